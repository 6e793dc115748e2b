"""``aioproducer broker``: the embedded broker in the foreground."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Annotated

import typer

from aioproducer.broker import EmbeddedCluster
from aioproducer.cli.options import pairs
from aioproducer.cli.running import InputError, Interrupt, run
from aioproducer.cli.terminal import Terminal
from aioproducer.errors import DataDirectoryException


def broker(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of the first broker, the others follow; 0: any free ones.")
    ] = 9092,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    brokers: Annotated[int, typer.Option(min=1, max=100, help="How many brokers the cluster has.")] = 1,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="A directory that keeps records, topics and offsets; they are in memory without it."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="NAME=VALUE",
            help="A broker config, such as num.partitions=6; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the embedded broker until Ctrl-C.

    Its bootstrap servers are printed on standard output as soon as it can be connected to.
    """
    configs = pairs(override, "-X")
    terminal = Terminal()
    ports = [port + number if port else 0 for number in range(brokers)]

    async def command(interrupt: Interrupt) -> int:
        cluster = EmbeddedCluster(brokers, host=host, ports=ports, configs=configs, data_dir=data_dir)
        try:
            await cluster.start()
        except DataDirectoryException as error:
            raise InputError(str(error)) from error
        except OSError as error:
            await cluster.close()
            raise InputError(_cannot_listen(error, host, ports)) from error
        try:
            terminal.say(cluster.bootstrap_servers)
            where = "in memory only" if data_dir is None else f"in {data_dir}"
            terminal.note(f"Records are kept {where}. Ctrl-C stops the broker.")
            await interrupt.once.wait()
        finally:
            await cluster.close()
        return 0

    run(terminal, command)


def _cannot_listen(error: OSError, host: str, ports: list[int]) -> str:
    where = f"{host}:{ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 and ports[0] else "")
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {where}: the port is in use; choose another with --port (0: any free one)"
    return f"cannot listen on {where}: {error.strerror or error}"
