"""The user's code on a record's way: interceptors, then serializers, then a partitioner.

    hooks.py               all hooks of a producer, and whether any of them is running
    interceptors.py        Kafka's ProducerInterceptor (KIP-42)
    serialization.py       serializers, in all their forms
    pending_serialization.py   a record's key and value while awaited serializers work on them
    in_context.py          a user's coroutine, in its own context
    custom_partitioner.py  partitioner.class

No module here imports asyncio.
"""
