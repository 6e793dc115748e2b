"""The clients by name, each in a file of its own; loading one needs that client to be installed."""

from __future__ import annotations

import importlib

from benchmarks.clients.client import Client

CLIENTS = {
    "aioproducer": "benchmarks.clients.aioproducer",
    "aiokafka": "benchmarks.clients.aiokafka",
    "confluent-kafka": "benchmarks.clients.confluent_kafka",
}
"""In the order in which they take turns; the others are compared with the first."""


def load_client(name: str) -> type[Client]:
    """The class of a client; ImportError when the client is not installed."""
    client: type[Client] = importlib.import_module(CLIENTS[name]).CLIENT
    return client
