"""Scheduling: which partitions may send now, and which batches a request takes. Rules of state and ``now``.

    a batch is full, ends its linger, or is retried → schedule → readiness → drain

    scheduling.py          all of it, for one producer
    schedule.py            lingers, back-offs, flushes
    pipeline.py            when a batch that is not full leaves
    readiness.py           whether the first batch of a partition may be sent, and why not
    drain.py               the batches of the next request to a node
    first_share.py         how much of what tasks await goes into the first of two requests
    topic_directory.py     the topics and their leaders, as metadata has them
    broker_availability.py since when nodes take nothing (KIP-794)
    wait_history.py        why batches waited
    deadlines.py           a heap of deadlines

No module here imports asyncio.
"""
