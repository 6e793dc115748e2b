"""Writes docs/configuration.md from the tables of configs: ``python scripts/configuration.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from aioproducer.configs.config_def import ConfigKey, table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.configs.unsupported import BY_PRODUCERS

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

The producer's configs, with Kafka's names: `KafkaProducer(linger_ms=5)` or
`KafkaProducer.from_config({"linger.ms": 5})`. A name that is not in this table and an invalid value raise
`ConfigException`. Written by `python scripts/configuration.py` from `aioproducer/configs/producer_config.py`;
do not edit.

| config | type | default | allowed | what it does |
|---|---|---|---|---|
"""

DIFFERENCES = {
    "parked.memory": (
        "Not in Kafka, where `send` blocks the thread; here `await send(...)` waits, and without `await` the record is "
        "parked."
    ),
    "batch.max.size": "Not in Kafka, where KIP-782 proposes it, and a batch never has more than batch.size bytes.",
    "batch.initial.size": (
        "Not in Kafka, which allocates batch.size for every batch; KIP-782 proposes 4096. With 1024, 10,000 partitions "
        "have an open batch each in the default buffer.memory."
    ),
    "transaction.group.window.ms": "Not in Kafka, whose producers have no units of work.",
    "compression.thread.bytes": "Not in Kafka, where the thread that calls `send` compresses.",
    "pipeline": "Not in Kafka, where every batch that is not full waits for linger.ms; with fixed it does here, too.",
    "key.serializer": "A class, an object or a plain callable; not required, because bytes need none.",
    "value.serializer": "As key.serializer.",
    "metric.reporters": (
        "Reporters are Python objects (`aioproducer.MetricsReporter`); none by default, because JMX needs a JVM."
    ),
    "partitioner.class": "A class, an object or a plain callable.",
    "interceptor.classes": "Classes, objects or plain callables.",
    "socket.connection.setup.timeout.ms": "Kafka gives no range; a negative time is refused here.",
    "socket.connection.setup.timeout.max.ms": "As socket.connection.setup.timeout.ms.",
    "connections.max.idle.ms": "Kafka gives no range; -1 means never, and lower values are refused here.",
    "sasl.mechanism": "Kafka's default is GSSAPI; here it must be given.",
    "sasl.plain.username": "Not in Kafka, where `sasl.jaas.config` contains it.",
    "sasl.plain.password": "As sasl.plain.username.",
    "sasl.oauth.token.provider": "Not in Kafka, where `sasl.login.callback.handler.class` is something similar.",
    "sasl.oauthbearer.jwt.retriever.class": "Kafka's own classes only; sasl.oauth.token.provider is for other code.",
    "sasl.oauthbearer.jwt.validator.class": "As sasl.oauthbearer.jwt.retriever.class.",
    "sasl.login.callback.handler.class": "As sasl.oauthbearer.jwt.retriever.class.",
    "sasl.login.connect.timeout.ms": (
        "Kafka gives no range, and sets no limit by default; a negative time is refused here."
    ),
    "sasl.login.read.timeout.ms": "As sasl.login.connect.timeout.ms.",
    "sasl.login.retry.backoff.ms": "Kafka gives no range; a negative time is refused here.",
    "sasl.login.retry.backoff.max.ms": "As sasl.login.retry.backoff.ms.",
    "sasl.kerberos.ticket.renew.window.factor": "Kafka gives no range; here it is a part.",
    "sasl.kerberos.ticket.renew.jitter": "As sasl.kerberos.ticket.renew.window.factor.",
    "sasl.kerberos.min.time.before.relogin": "Kafka gives no range; a negative time is refused here.",
    "send.buffer.bytes": (
        "In Kafka a connection keeps this size. Here the default is only the size at first, and grows where answers "
        "show a fast or long line; a size that is given is kept."
    ),
    "ssl.context": "Not in Kafka. `ssl.engine.factory.class` makes one for each connection.",
    "ssl.truststore.type": (
        "Kafka's default is JKS; here the file's first bytes decide. Types of other Java providers are not read."
    ),
    "ssl.keystore.type": "As ssl.truststore.type.",
    "ssl.enabled.protocols": "Kafka accepts any names; here those of TLS and SSL.",
    "ssl.protocol": "Kafka accepts any name; here those of TLS that Java 17 has enabled.",
    "ssl.keymanager.algorithm": "Kafka accepts any name; here those that every Java has.",
    "ssl.trustmanager.algorithm": "As ssl.keymanager.algorithm.",
    "ssl.engine.factory.class": (
        "Makes an `ssl.SSLContext` rather than Java's `SslEngineFactory`, and is called without configs."
    ),
    "ssl.endpoint.identification.algorithm": "Kafka accepts any value, but knows only these.",
    "batch.size": "Kafka accepts one larger than buffer.memory, and then takes no record at all.",
    "max.in.flight.requests.per.connection": (
        "Kafka allows an idempotent producer at most 5; here the limit applies to the window of a partition, "
        "not to the connection (KIP-1269)."
    ),
}
"""Configs that differ from Kafka's own table; tests/kafka_classes/test_kafka_compatibility.py compares the rest."""

MIDDLE = """
## Where a config differs from Kafka's

All others have the name, type, default and range of Kafka's own table; a test compares them with Kafka's classes.

| config | what differs |
|---|---|
"""

TAIL = """
## Kafka's configs that this version does not have

Giving one of these is an error, because a config that is ignored is worse than none. A name that ends in a dot stands
for all names that begin with it.

| config | why |
|---|---|
"""


def row(key: ConfigKey) -> str:
    default = "required" if key.default is dataclasses.MISSING else f"`{_text(key.default)}`"
    return f"| `{key.name}` | {key.type.value} | {default} | {key.valid.text} | {key.doc} |"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def page(keys: Iterable[ConfigKey], unsupported: Mapping[str, str]) -> str:
    """The whole page."""
    names = "\n".join(f"| `{name}` | {why[0].upper()}{why[1:]}. |" for name, why in sorted(unsupported.items()))
    rows = "\n".join(map(row, keys))
    differences = "\n".join(f"| `{name}` | {text} |" for name, text in DIFFERENCES.items())
    return f"{HEAD}{rows}\n{MIDDLE}{differences}\n{TAIL}{names}\n"


if __name__ == "__main__":
    TARGET.write_text(page(table(ProducerConfig).values(), BY_PRODUCERS))
