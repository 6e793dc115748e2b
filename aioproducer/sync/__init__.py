"""The producer for threads: the calls of :class:`aioproducer.KafkaProducer`, which return when they are done.

::

    from aioproducer.sync import KafkaProducer

    with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
        metadata = producer.send("orders", b"value", key=b"42").result()

producer.py     KafkaProducer: what users call, from any thread
delivery.py     Delivery: a record's end, for threads
unit.py         Unit: a unit of work, for threads
handover.py     passes records from threads to the event loop
loop_thread.py  the thread of that loop, and calls into it
lifetime.py     the end of the interpreter, and forks

``docs/threads.md`` has recipes, for Celery among others. Needs the extra ``sync``.
"""

from aioproducer.sync.delivery import Delivery
from aioproducer.sync.producer import KafkaProducer
from aioproducer.sync.unit import Unit

__all__ = ["Delivery", "KafkaProducer", "Unit"]
