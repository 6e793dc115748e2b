"""Options that several commands share, and the configs they make."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from aioproducer.configs.names import is_dotted
from aioproducer.configs.properties import read_properties
from aioproducer.errors import ConfigException

DEFAULT_BOOTSTRAP_SERVER = "localhost:9092"

BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"The first brokers to contact; {DEFAULT_BOOTSTRAP_SERVER} if no config names others.",
        show_default=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Client configs in a .properties file.", show_default=False),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-X", metavar="NAME=VALUE", help="A client config, such as linger.ms=20; may be repeated.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


def pairs(texts: Iterable[str] | None, option: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a mapping; a text without ``=`` is an error in the command line.

    The error shows a text only if it looks like a config's name: it may be a password.
    """
    found = {}
    for number, text in enumerate(texts or (), 1):
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            shown = repr(text) if is_dotted(text) else f"number {number} of those given"
            raise typer.BadParameter(f"{shown} is not NAME=VALUE", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def read_config_file(path: Path) -> dict[str, str]:
    """The configs in a .properties file. Raises ConfigException, or OSError if it cannot be read."""
    data = path.read_bytes()
    try:
        return read_properties(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigException(f"{path} is not a .properties file: byte {error.start} is not UTF-8") from error
    except ConfigException as error:
        raise ConfigException(f"{path}: {error}") from error


def client_configs(
    bootstrap_server: str | None,
    config_file: Path | None,
    overrides: Iterable[str] | None,
    *,
    default_server: str | None = DEFAULT_BOOTSTRAP_SERVER,
) -> dict[str, str]:
    """A client's configs in Kafka's names: the file's, overridden by ``-X``, overridden by ``--bootstrap-server``."""
    configs = {} if default_server is None else {"bootstrap.servers": default_server}
    if config_file is not None:
        configs.update(read_config_file(config_file))
    configs.update((name.replace("_", "."), value) for name, value in pairs(overrides, "-X").items())
    if bootstrap_server is not None:
        configs["bootstrap.servers"] = bootstrap_server
    return configs
