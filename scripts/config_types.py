"""Writes aioproducer/config_types.py from the tables of configs: ``python scripts/config_types.py``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from aioproducer.configs.client_config import ClientConfig
from aioproducer.configs.config_def import ConfigKey, Type, table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.net.retrying_client import RetryingConfig
from aioproducer.reader import ReaderConfig
from aioproducer.schema_registry.client.registry_config import RegistryConfig

TARGET = Path(__file__).parent.parent / "aioproducer" / "config_types.py"
WIDTH = 120

HEAD = '''\
"""The configs of producers and other clients as type checkers and editors know them.

Written by ``python scripts/config_types.py`` from the tables of configs; do not edit.
"""

from collections.abc import Sequence
from ssl import SSLContext
from typing import Literal, Required, TypedDict

from aioproducer.configs.plugin_types import (
    ContextFactoryLike,
    InterceptorLike,
    PartitionerLike,
    ReporterLike,
    TokenProviderLike,
)
from aioproducer.security.password import Password
'''

NAMED_BY_THE_CALL = {"key.serializer", "value.serializer", "schema.registry.url"}
"""Parameters of their own: the types of the producer follow from the serializers."""

TYPES = {
    Type.BOOLEAN: "bool",
    Type.SHORT: "int",
    Type.INT: "int",
    Type.LONG: "int",
    Type.DOUBLE: "float",
    Type.STRING: "str",
    Type.LIST: "str | Sequence[str]",
    Type.PASSWORD: "str | Password",
}
OBJECTS = {
    "bearer.auth.token.provider": "TokenProviderLike",
    "interceptor.classes": "InterceptorLike | Sequence[InterceptorLike]",
    "metric.reporters": "ReporterLike | Sequence[ReporterLike]",
    "partitioner.class": "PartitionerLike",
    "sasl.oauth.token.provider": "TokenProviderLike",
    "ssl.context": "SSLContext",
    "ssl.engine.factory.class": "ContextFactoryLike",
}
UNITS = {
    "milliseconds": re.compile(r"\.ms$"),
    "bytes": re.compile(r"\.(bytes|memory)$|^(batch|max\.request)\.size$"),
}


def type_of(key: ConfigKey) -> str:
    """What a value is, as an annotation."""
    if key.valid.values:
        # Kafka has words for values; numbers among them may be written as such.
        values: list[Any] = [f'"{value}"' for value in key.valid.values]
        values += [value for value in key.valid.values if re.fullmatch("-?[0-9]+", value)]
        found = f"Literal[{', '.join(values)}]"
    else:
        found = OBJECTS[key.name] if key.name in OBJECTS else TYPES[key.type]
    return f"{found} | None" if key.default is None else found


def field(key: ConfigKey) -> str:
    """The declaration of a key, with everything that is known of it."""
    name, type = key.name.replace(".", "_"), type_of(key)
    declared = f"    {name}: {f'Required[{type}]' if key.default is MISSING else type}"
    if len(declared) > WIDTH:
        declared = re.sub(r"\[(.*)\]", r"[\n        \1\n    ]", declared)
    unit = [unit for unit, names in UNITS.items() if names.search(key.name)]
    facts = ", ".join([*unit, *([key.valid.text] if key.valid.text else [])])
    default = "Required." if key.default is MISSING else f"Default: {_text(key.default)}."
    about = f"``{key.name}``{f': {facts}' if facts else ''}. {default}"
    doc = re.sub(r"\[([^]]+)\]\([^)]+\)", r"docs/\1", key.doc)
    return f'{declared}\n    """{_wrapped(doc, 7)}\n\n    {_wrapped(about, 4)}\n    """\n'


def _text(value: object) -> str:
    if value in ("", ()):
        return "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrapped(text: str, indent: int) -> str:
    """Lines that are not too long, of which the first stands behind something."""
    lines = textwrap.wrap(" " * indent + text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)[indent:]


def typed_dict(name: str, base: str, doc: str, keys: Iterable[ConfigKey]) -> str:
    """A class with these keys."""
    fields = "\n".join(map(field, keys))
    return f'\n\nclass {name}({base}, total=False):\n    """{doc}"""\n\n{fields}'


def module() -> str:
    """The whole module."""
    client, retrying = table(ClientConfig), table(RetryingConfig)
    required = [key for key in client.values() if key.default is MISSING]
    optional = [key for key in client.values() if key.default is not MISSING]

    def more(rows: Mapping[str, ConfigKey], than: Mapping[str, ConfigKey]) -> list[ConfigKey]:
        return [key for name, key in rows.items() if name not in than and name not in NAMED_BY_THE_CALL]

    return HEAD + "".join(
        [
            typed_dict("ClientOptions", "TypedDict", "What every client of a cluster may be given.", optional),
            typed_dict(
                "ProducerOptions",
                "ClientOptions",
                "What a producer may be given, besides its serializers.",
                more(table(ProducerConfig), client),
            ),
            typed_dict(
                "ProducerConfigs",
                "ProducerOptions",
                "The configs of a producer: ``KafkaProducer(**configs, value_serializer=…)``.",
                required,
            ),
            typed_dict(
                "RetryingOptions",
                "ClientOptions",
                "What a client may be given that is asked for one thing at a time.",
                more(retrying, client),
            ),
            typed_dict(
                "AdminConfigs",
                "RetryingOptions",
                "The configs of an admin client: ``KafkaAdmin(**configs)``.",
                required,
            ),
            typed_dict(
                "ReaderConfigs",
                "RetryingOptions",
                "The configs of a reader: ``PartitionReader(servers, topic, partition, **configs)``.",
                more(table(ReaderConfig), retrying),
            ),
            typed_dict(
                "RegistryOptions",
                "TypedDict",
                "What the client of a schema registry may be given: ``SchemaRegistryClient(url, **options)``.",
                more(table(RegistryConfig), {}),
            ),
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(module())
