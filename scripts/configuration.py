"""Writes docs/configuration.md from the tables of configs: ``python scripts/configuration.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from aioproducer.config import UNSUPPORTED, ProducerConfig
from aioproducer.config_def import ConfigKey, table

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

The producer's configs in Kafka's names: `KafkaProducer(linger_ms=5)` or
`KafkaProducer.from_config({"linger.ms": 5})`. A name that is not in this table, and a value that is not possible, raise
`ConfigException`. Written by `python scripts/configuration.py` from `aioproducer/config.py`; do not edit.

| config | type | default | allowed | what it does |
|---|---|---|---|---|
"""

DIFFERENCES = {
    "parked.memory": "Kafka has none: there `send` blocks the thread where here the record is parked.",
    "compression.thread.bytes": "Kafka has none: there the thread that calls `send` compresses.",
    "pipeline": "Kafka has none: there every batch that is not full waits for linger.ms.",
    "key.serializer": "Not only a class, but also an object or a plain callable; and not required: bytes need none.",
    "value.serializer": "As key.serializer.",
    "metric.reporters": (
        "The protocol is Python's (`aioproducer.MetricsReporter`); none by default, as there is no JMX outside the JVM."
    ),
    "enable.metrics.push": "Kafka's default is true, and true is refused until it is there.",
    "partitioner.class": "Not only a class, but also an object or a plain callable.",
    "interceptor.classes": "Not only classes, but also objects or plain callables.",
    "client.id": "Kafka's is empty, and made up where it is not given.",
    "socket.connection.setup.timeout.ms": "Kafka gives no range; a negative time is refused here.",
    "socket.connection.setup.timeout.max.ms": "As socket.connection.setup.timeout.ms.",
    "connections.max.idle.ms": "Kafka gives no range; -1 means never, and what is below is refused here.",
    "sasl.mechanism": "GSSAPI and OAUTHBEARER are not there: with them a client cannot be made.",
    "sasl.plain.username": "Kafka has none: there `sasl.jaas.config` has it.",
    "sasl.plain.password": "As sasl.plain.username.",
    "ssl.context": "Kafka has none: there `ssl.engine.factory.class` makes what is like it.",
    "ssl.truststore.type": "Kafka's default is JKS, which is Java's alone.",
    "ssl.keystore.type": "As ssl.truststore.type.",
    "ssl.endpoint.identification.algorithm": "Kafka takes any, and knows none but these.",
    "batch.size": "Kafka takes one that is larger than buffer.memory, and then accepts no record at all.",
    "max.in.flight.requests.per.connection": (
        "Kafka takes no more than 5 from an idempotent producer; here the window of a partition is bounded, "
        "and not the connection (KIP-1269)."
    ),
}
"""Where a config of ours is not what Kafka's own table says; tests/test_kafka_compatibility.py compares the rest."""

MIDDLE = """
## Where a config differs from Kafka's

All others have the name, the type, the default and the range of Kafka's own table; a test asks Kafka's classes.

| config | what differs |
|---|---|
"""

TAIL = """
## Kafka's configs that this version does not have

Giving one of these is an error, as a config that is ignored is worse than none (a name that ends in a dot stands for
all that begin with it and are not in the table above):
"""


def row(key: ConfigKey) -> str:
    default = "required" if key.default is dataclasses.MISSING else f"`{_text(key.default)}`"
    return f"| `{key.name}` | {key.type.value} | {default} | {key.valid.text} | {key.doc} |"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def page(keys: Iterable[ConfigKey], unsupported: Iterable[str]) -> str:
    """The whole page."""
    names = "\n".join(f"- `{name}`" for name in sorted(unsupported))
    rows = "\n".join(map(row, keys))
    differences = "\n".join(f"| `{name}` | {text} |" for name, text in DIFFERENCES.items())
    return f"{HEAD}{rows}\n{MIDDLE}{differences}\n{TAIL}\n{names}\n"


if __name__ == "__main__":
    TARGET.write_text(page(table(ProducerConfig).values(), UNSUPPORTED))
