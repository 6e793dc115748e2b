"""A log of all deliveries, in a file or a topic: every record that was sent, and its outcome (``docs/schemas.md``).

::

    KafkaProducer(bootstrap_servers=…, interceptor_classes=DeliveryLog("deliveries.jsonl"))

The interceptor stamps each record with headers: a stream, a number and a time. It gives its sinks one event when the
record is sent, and one with its outcome. Sinks never block the event loop. The audit compares the log with the topics.

delivery_log.py   the interceptor
events.py         the events, one JSON object each, and their reader
file_sink.py      writes the events to a file, in a thread
topic_sink.py     sends the events to a topic, through a separate producer
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
