"""The clients by name, each in a file of its own; loading one needs that client to be installed.

chunks.py    deliveries that are read in chunks
client.py    the interface of them all
threaded.py  what those share that have a thread of their own
"""

from __future__ import annotations

import importlib

from benchmarks.clients.client import Client

REFERENCE = "aioproducer"
"""The one that the others are compared with."""

PURE = "aioproducer-pure"
"""Runs from the checkout, where nothing is compiled, whatever is installed."""

WINDOW_20 = "aioproducer-window-20"
"""Takes part where there is a long line alone."""

CLIENTS = {
    REFERENCE: "aioproducer:Aioproducer",
    "aioproducer-unread": "aioproducer:Unread",
    "aioproducer-many": "aioproducer_bulk:Many",
    "aioproducer-table": "aioproducer_bulk:Table",
    "aioproducer-gc": "aioproducer:Tuned",
    "aioproducer-sync": "aioproducer_sync:Sync",
    WINDOW_20: "aioproducer:Window20",
    PURE: "aioproducer:Pure",
    "aioproducer-compat": "aioproducer_compat:Compat",
    "confluent-kafka": "confluent_kafka:ConfluentKafka",
    "confluent-kafka-aio": "confluent_kafka_aio:ConfluentKafkaAio",
    "aiokafka": "aiokafka:Aiokafka",
    "kafka-python": "kafka_python:KafkaPython",
    "java": "java:Java",
    "franz-go": "franz_go:FranzGo",
    "bare-socket": "bare_socket:BareSocket",
}
"""Module and class, in the order in which they take turns."""


def load_client(name: str) -> type[Client]:
    """The class of a client; ImportError when what it needs is not installed."""
    module, _, cls = CLIENTS[name].partition(":")
    client: type[Client] = getattr(importlib.import_module(f"benchmarks.clients.{module}"), cls)
    return client
