"""A broker in a process of its own that takes every batch and keeps none, so that what is measured is the producer.

Two nodes. The first leads topic ``reached``; the second leads topic ``unreached``, as large, and never says a word to
who connects. Prints the first node's address, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import AbstractAsyncContextManager

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import produce
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.kafka_apis import APIS, Api
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from benchmarks.harness.processes import broker_process

REACHED, UNREACHED = "reached", "unreached"


def discard(context: BrokerContext, request: Request, message: ProduceRequest) -> ProduceResponse:
    """Every batch is appended, it says."""
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [PartitionProduceResponse(data.index, ErrorCode.NONE, 0) for data in topic.partition_data],
            )
            for topic in message.topic_data
        ]
    )


def main(partitions: int) -> None:
    asyncio.run(serve(partitions))


async def serve(partitions: int) -> None:
    APIS[ApiKey.PRODUCE] = Api(produce.VERSIONS, discard)
    cluster = EmbeddedCluster(2)
    await cluster.start_node(0)
    silent = socket.create_server(("127.0.0.1", 0))
    cluster._state.node_started(1, {"PLAINTEXT": Node(1, *silent.getsockname())})
    cluster.create_topic(REACHED, assignments=[(0,)] * partitions)
    cluster.create_topic(UNREACHED, assignments=[(1,)] * partitions)
    print(cluster.bootstrap_servers.split(",")[0], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    silent.close()
    await cluster.close()


def discarding_broker(partitions: int) -> AbstractAsyncContextManager[str]:
    """Its bootstrap server."""
    statement = "from benchmarks.harness.discarding_broker import main; main(int(sys.argv[1]))"
    return broker_process(statement, str(partitions))
