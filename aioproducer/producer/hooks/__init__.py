"""The user's code on a record's way: interceptors, then serializers, then a partitioner.

    hooks.py               which of them there are, and whether any of them is running
    interceptors.py        Kafka's ProducerInterceptor (KIP-42)
    serialization.py       serializers, whatever form they were given in
    pending_serialization.py   a record's key and value while serializers that are awaited work on them
    in_context.py          a coroutine of the user's, in its own context
    custom_partitioner.py  partitioner.class

No module here imports asyncio.
"""
