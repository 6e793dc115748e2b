"""``aioproducer topics``: list, create, describe, alter, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from aioproducer.admin import AdminConfig, ConfigResource, KafkaAdmin, NewTopic, TopicDescription
from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, client_configs, pairs
from aioproducer.cli.running import FAILED, explain, run, until_interrupted
from aioproducer.cli.terminal import Terminal
from aioproducer.configs.producer_config import known_to
from aioproducer.errors import KafkaError

app = typer.Typer(help="List, create, describe, alter and delete topics.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="Names of topics.")]

_TOPIC_CONFIG = re.compile(r"[a-z.]+=")


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Also list Kafka's internal topics.")] = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """List all topics: name, partitions, replication factor."""

    async def command(admin: KafkaAdmin, terminal: Terminal) -> int:
        topics = await admin.list_topics(internal=internal)
        terminal.table(
            ("TOPIC", "PARTITIONS", "REPLICATION FACTOR"),
            [(topic.name, len(topic.partitions), topic.replication_factor) for topic in topics.values()],
        )
        return 0

    _run(command, bootstrap_server, config, override)


@app.command("create")
def create_topics(
    names: Names,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="Partitions; by default, the broker decides.", show_default=False),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(min=1, help="Replicas; by default, the broker decides.", show_default=False),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="NAME=VALUE or FILE",
            help="A config of the topic, such as retention.ms=3600000; may be repeated. Or, as for the other commands, "
            "client configs in a .properties file.",
            show_default=False,
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
    override: Overrides = None,
) -> None:
    """Create topics."""
    topic_configs, file = _topic_configs(config or ())
    wanted = [
        NewTopic(name, partitions or -1, replication_factor or -1, topic_configs) for name in dict.fromkeys(names)
    ]

    async def command(admin: KafkaAdmin, terminal: Terminal) -> int:
        return _print_results(terminal, "created", await admin.create_topics(wanted))

    _run(command, bootstrap_server, file, override)


@app.command("describe")
def describe_topics(
    names: Names,
    configs: Annotated[
        bool, typer.Option("--configs", help="Also show configs: their values, and where these come from.")
    ] = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Describe topics: leaders, replicas, replicas in sync."""

    async def command(admin: KafkaAdmin, terminal: Terminal) -> int:
        described = await admin.describe_topics(dict.fromkeys(names))
        found = [topic for topic in described.values() if isinstance(topic, TopicDescription)]
        columns = ("TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC")
        terminal.table(columns, [row for topic in found for row in _partitions(topic)])
        failed = _print_errors(terminal, described)
        if configs:
            of_topics = await admin.describe_all_configs(ConfigResource.topic(topic.name) for topic in found)
            rows = [
                (resource.name, name, entry.value or "", entry.source.name)
                for resource, entries in of_topics.items()
                if not isinstance(entries, KafkaError)
                for name, entry in entries.items()
            ]
            terminal.table(("TOPIC", "CONFIG", "VALUE", "SOURCE"), rows)
            failed |= _print_errors(terminal, {resource.name: entries for resource, entries in of_topics.items()})
        return failed

    _run(command, bootstrap_server, config, override)


@app.command("alter")
def alter_topics(
    names: Names,
    config: Annotated[
        list[str],
        typer.Option(
            "--config",
            metavar="NAME=VALUE or FILE",
            help="A config to set, such as retention.ms=3600000; with nothing after the =, reset it. May be repeated. "
            "Or, as for the other commands, client configs in a .properties file.",
            show_default=False,
        ),
    ],
    bootstrap_server: BootstrapServer = None,
    override: Overrides = None,
) -> None:
    """Change configs of topics while they are in use."""
    changes, file = _topic_configs(config)

    async def command(admin: KafkaAdmin, terminal: Terminal) -> int:
        wanted = {ConfigResource.topic(name): {key: text or None for key, text in changes.items()} for name in names}
        results = await admin.alter_all_configs(wanted)
        return _print_results(terminal, "altered", {resource.name: error for resource, error in results.items()})

    _run(command, bootstrap_server, file, override)


@app.command("delete")
def delete_topics(
    names: Names,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Delete topics with all their records."""

    async def command(admin: KafkaAdmin, terminal: Terminal) -> int:
        return _print_results(terminal, "deleted", await admin.delete_topics(dict.fromkeys(names)))

    _run(command, bootstrap_server, config, override)


def _run(
    command: Callable[[KafkaAdmin, Terminal], Coroutine[Any, Any, int]],
    bootstrap_server: str | None,
    config: Path | None,
    override: Iterable[str] | None,
) -> None:
    terminal = Terminal()

    async def with_admin() -> int:
        configs = client_configs(bootstrap_server, config, override)
        async with KafkaAdmin.from_config(known_to(AdminConfig, configs)) as admin:
            return await command(admin, terminal)

    run(terminal, lambda interrupt: until_interrupted(terminal, interrupt, with_admin()))


def _topic_configs(given: Iterable[str]) -> tuple[Mapping[str, str], Path | None]:
    """Splits the values of ``--config`` into configs of topics and the file of client configs."""
    files = [text for text in given if not _TOPIC_CONFIG.match(text)]
    if len(files) > 1:
        raise typer.BadParameter(f"{' and '.join(files)} cannot both be config files", param_hint="--config")
    configs = pairs([text for text in given if _TOPIC_CONFIG.match(text)], "--config")
    return configs, Path(files[0]) if files else None


def _partitions(topic: TopicDescription) -> Iterable[tuple[str, int, str, str, str]]:
    for info in topic.partitions:
        leader = str(info.leader) if info.leader >= 0 else "none"
        yield topic.name, info.partition, leader, _ids(info.replicas), _ids(info.in_sync_replicas)


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


def _print_results(terminal: Terminal, done: str, results: Mapping[str, KafkaError | None]) -> int:
    for name, error in results.items():
        if error is None:
            terminal.say(f"{done} {name}")
    return _print_errors(terminal, results)


def _print_errors(terminal: Terminal, results: Mapping[str, object]) -> int:
    errors = [error for error in results.values() if isinstance(error, KafkaError)]
    for error in errors:
        terminal.fail(f"Error: {explain(error)}")
    return FAILED if errors else 0
