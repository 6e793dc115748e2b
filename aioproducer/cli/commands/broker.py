"""``aioproducer broker``: the embedded broker in the foreground."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from aioproducer.broker import EmbeddedCluster
from aioproducer.cli.commands.collector import collecting
from aioproducer.cli.options import pairs, read_config_file
from aioproducer.cli.running import InputError, Interrupt, explain, first_of, run
from aioproducer.cli.terminal import Terminal
from aioproducer.configs.providers import resolved
from aioproducer.errors import ConfigException, DataDirectoryException
from aioproducer.process.descriptors import raise_limit

_PORT = 9092

_SWITCH_S = 0.0005
"""How long a thread that reads batches or commits may hold up the event loop, and how long the event loop may hold up a
commit. Python's default is ten times as long, and a request may have to wait several times."""


def broker(
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            show_default=str(_PORT),
            help="The port of the first broker; the others have the next ports. 0: any free ports. Not together with "
            "-X listeners.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    brokers: Annotated[int, typer.Option(min=1, max=100, help="How many brokers the cluster has.")] = 1,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The directory of records, topics and offsets; by default they are in memory."),
    ] = None,
    recover: Annotated[
        bool,
        typer.Option(
            "--recover",
            help="Start even if files of the data directory are damaged. Readable data is kept, under the same "
            "offsets; unreadable data is set aside under names that end with .damaged.",
        ),
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PARTITIONS]",
            help="A topic to create if it does not exist; may be repeated. Others are created on first use.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Broker configs in a .properties file. In its values and in those of -X, ${env:NAME} stands for an "
            "environment variable, and ${file:PATH:KEY} for an entry of another .properties file.",
            show_default=False,
        ),
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

    It prints its bootstrap servers on standard output as soon as clients can connect.
    """
    given = pairs(override, "-X")
    topics = dict(map(_topic, topic or ()))
    terminal = Terminal()
    raise_limit()
    sys.setswitchinterval(_SWITCH_S)
    configs = _configs(config, given)
    ports = _ports(port, brokers, configs)

    async def command(interrupt: Interrupt) -> int:
        cluster = EmbeddedCluster(brokers, host=host, ports=ports, configs=configs, data_dir=data_dir, recover=recover)
        try:
            await cluster.start()
        except DataDirectoryException as error:
            raise InputError(str(error)) from error
        except OSError as error:
            await cluster.close()
            raise InputError(_cannot_listen(error, host, ports)) from error
        failure = asyncio.ensure_future(cluster.failed())
        try:
            for name in topics.keys() - {kept.name for kept in cluster.topics}:
                cluster.create_topic(name, topics[name])
            terminal.say(cluster.bootstrap_servers)
            where = "in memory only" if data_dir is None else f"in {data_dir}"
            terminal.note(f"Records are kept {where}. Ctrl-C stops the broker.")
            with collecting():
                await first_of(failure, interrupt.once)
        finally:
            await cluster.close()
            # The data directory may have failed while the cluster was being closed.
            failed, _ = await asyncio.wait([failure], timeout=0)
            failure.cancel()
        if failed:
            kept = "" if data_dir is None else "; after a restart the broker has all acknowledged records"
            raise InputError(failure.result() + kept)
        return 0

    run(terminal, command)


def _configs(file: Path | None, given: Mapping[str, str]) -> dict[str, object]:
    """The configs of the file, overridden by those ``given``, with environment variables and entries of files."""
    try:
        written = {} if file is None else read_config_file(file)
        return resolved({"config.providers": "env,file", **written, **given})
    except ConfigException as error:
        raise typer.BadParameter(str(error)) from error
    except OSError as error:
        raise typer.BadParameter(explain(error)) from error


def _ports(port: int | None, brokers: int, configs: Mapping[str, object]) -> list[int] | None:
    """The port of each broker; None if ``listeners`` has them."""
    if "listeners" in configs:
        if port is not None:
            raise typer.BadParameter("the config listeners names the ports: omit one of the two", param_hint="--port")
        return None
    first = _PORT if port is None else port
    return [first + number if first else 0 for number in range(brokers)]


def _topic(text: str) -> tuple[str, int]:
    """A topic and its number of partitions; -1 leaves that to ``num.partitions``."""
    name, colon, count = text.partition(":")
    if colon and not (count.isascii() and count.isdecimal() and int(count) > 0):
        raise typer.BadParameter(f"{text!r} is not NAME or NAME:PARTITIONS", param_hint="--topic")
    return name, int(count) if colon else -1


def _cannot_listen(error: OSError, host: str, ports: list[int] | None) -> str:
    if ports is None:
        return error.strerror or str(error)
    where = f"{host}:{ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 and ports[0] else "")
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {where}: the port is in use; choose another with --port (0: any free one)"
    return f"cannot listen on {where}: {error.strerror or error}"
