"""A log of all deliveries, in a file or a topic: what was sent, and what became of it. ``docs/schemas.md`` has the
schema.

::

    KafkaProducer(bootstrap_servers=…, interceptor_classes=DeliveryLog("deliveries.jsonl"))
"""

from aioproducer.delivery_log.delivery_log import DeliveryLog, Sink
from aioproducer.delivery_log.events import COUNTER_HEADER, SENT_HEADER, STREAM_HEADER, read_events
from aioproducer.delivery_log.file_sink import FileSink
from aioproducer.delivery_log.topic_sink import TopicSink

__all__ = [
    "COUNTER_HEADER",
    "SENT_HEADER",
    "STREAM_HEADER",
    "DeliveryLog",
    "FileSink",
    "Sink",
    "TopicSink",
    "read_events",
]
