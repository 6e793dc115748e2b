"""Checks once, on the driver, that a broker answers: a wrong address is one error, not one of each attempt."""

from __future__ import annotations

from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.configs.producer_config import known_to, producer_config
from aioproducer.errors import KafkaError
from aioproducer.spark.sink.sink_options import SinkOptions


async def check_reachable(options: SinkOptions) -> None:
    """Returns when a broker has answered; what it says of the topic is for the tasks, which may create it.

    The error that shows after max.block.ms that there is none, or at once that it refuses this client.
    """
    producer = producer_config(options.configs)
    wait = max(producer.max_block_ms, 1)
    waits = {"default.api.timeout.ms": wait, "request.timeout.ms": min(wait, producer.request_timeout_ms)}
    configs = {**known_to(AdminConfig, options.configs), **waits}
    try:
        async with KafkaAdmin.from_config(configs) as admin:
            await admin.describe_topics([options.marker_topic or options.prefix])
    except KafkaError as error:
        error.add_note("the driver checks this before any task begins, and waits up to kafka.max.block.ms")
        raise
