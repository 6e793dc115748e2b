"""The Python in README.md and in the documents runs as it stands, on an embedded broker in the place of localhost:9092.

A document's blocks share their names, as they do for who reads it from top to bottom. What a reader has at hand without
being told, such as a producer and values to send, every block is given. ``docs/testing.md`` has a test of its own.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import aioproducer
from aioproducer import KafkaProducer, TopicPartition
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ProducerFencedException, TransactionAbortableException
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.integrations.client_of import client_of
from tests.support.leaks import no_leaks as no_leaks

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "docs/broker-configuration.md",
    "docs/broker-metrics.md",
    "docs/metrics.md",
    "docs/migrating.md",
    "docs/security.md",
    "docs/sending.md",
    "docs/services.md",
    "docs/threads.md",
    "docs/transactions.md",
    "docs/types.md",
    "docs/units.md",
)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(document: str) -> list[str]:
    return BLOCK.findall((ROOT / document).read_text())


@contextmanager
def own_handlers() -> Iterator[logging.Logger]:
    """Handlers that a block adds to the package's logger are taken away."""
    logger = logging.getLogger("aioproducer")
    before = logger.handlers[:]
    try:
        yield logger
    finally:
        logger.handlers[:] = before


@asynccontextmanager
async def connect() -> AsyncIterator[str]:
    yield "a database"


class Reading:
    """Everything that the blocks of a document need, and what they have made."""

    def __init__(self, cluster: EmbeddedCluster, producer: KafkaProducer) -> None:
        self.names: dict[str, Any] = {}
        self._servers = cluster.bootstrap_servers
        self._at_hand = {
            **{name: getattr(aioproducer, name) for name in aioproducer.__all__},
            "EmbeddedCluster": EmbeddedCluster,
            "ProducerFencedException": ProducerFencedException,
            "TransactionAbortableException": TransactionAbortableException,
            "batch": [b"1", b"2"],
            "cluster": cluster,
            "connect": connect,
            "consumer_group": "my-group",
            "count": lambda what, topic: None,
            "current_trace": lambda: b"trace",
            "json": json,
            "keys": [b"1", b"2"],
            "logging": logging,
            "offsets": {TopicPartition("in", 0): 42},
            "password": "secret",
            "producer": producer,
            "pyarrow": pyarrow,
            "to_json": lambda value: json.dumps(value).encode(),
            "values": [b"1", b"2"],
        }

    async def run(self, block: str) -> None:
        """In the loop where it awaits, else in a thread, where it may have a loop of its own."""
        self.names.update(self._at_hand)
        code = block.replace("localhost:9092", self._servers).replace("=…", f"={self._servers!r}")
        code = code.replace("://:9092", "://:0").replace("://:9292", "://:0")  # listeners
        code = code.replace("orders.db", ":memory:")
        compiled = compile(code, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if compiled.co_flags & inspect.CO_COROUTINE:
            await eval(compiled, self.names)
        else:
            await asyncio.to_thread(exec, compiled, self.names)


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python's own
@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("document", DOCUMENTS)
async def test_the_code_of_a_document_runs(document: str) -> None:
    config: dict[str, Any] = {"linger_ms": 0}
    if document in ("docs/transactions.md", "docs/units.md"):
        config["transactional_id"] = "a reader's"
    nodes = 2 if document == "docs/metrics.md" else 1  # that page uses node 1, others have one node
    configs = ("transaction.two.phase.commit.enable", "unstable.api.versions.enable")
    async with EmbeddedCluster(nodes, configs=dict.fromkeys(configs, True)) as cluster:
        cluster.create_topic("orders", assignments=[(nodes - 1,)])
        cluster.create_topic("in")
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            if "transactional_id" in config:
                await producer.init_transactions()
            else:
                await producer.send("orders", b"value")
            read = Reading(cluster, producer)
            with own_handlers():
                for block in blocks(document):
                    await read.run(block)


@pytest.mark.parametrize("document", ["README.md", "docs/services.md"])
async def test_the_service_takes_orders(document: str) -> None:
    order = {"id": "1", "customer": "c"}
    async with EmbeddedCluster() as cluster:
        read = Reading(cluster, KafkaProducer(bootstrap_servers="localhost:9092"))
        (block,) = (block for block in blocks(document) if "async def create(" in block)
        await read.run(block)
        async with client_of(read.names["app"]) as client:
            answer = await client.post("/orders", json=order)
            assert (answer.status_code, answer.json()) == (201, 0)
        ((record,),) = [list(cluster.log("orders").records())]
        assert json.loads(record.value or b"") == order


def test_the_formatter_writes_json() -> None:
    (block,) = (block for block in blocks("docs/services.md") if "class JsonFormatter" in block)
    names: dict[str, Any] = {"json": json, "logging": logging}
    with own_handlers() as logger:
        exec(block, names)
        (handler,) = (handler for handler in logger.handlers if handler is names["handler"])
    record = logger.makeRecord("n", logging.ERROR, "f", 1, "%s is away", ("b",), None, extra={"kafka": {"event": "e"}})
    line = json.loads(handler.format(record))
    assert (line["message"], line["level"], line["event"]) == ("b is away", "ERROR", "e")


def test_the_readmes_test_passes() -> None:
    (block,) = (block for block in blocks("README.md") if "def test_an_order_is_there_once" in block)
    names: dict[str, Any] = {}
    exec(block, names)
    with ThreadedCluster() as broker:
        names["test_an_order_is_there_once"](broker)
        (rule,) = broker.faults.rules
        assert len(rule.hits) == 1
