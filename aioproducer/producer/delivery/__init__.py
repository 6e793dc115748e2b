"""Deliveries: a caller's handles on the outcome of the batches that its records are in.

    delivery.py         one record's delivery
    wait_all.py         many deliveries at once
    produce_result.py   the outcome of a batch, which its deliveries point into
    audience.py         the futures, callbacks and hooks that a producer's results notify
    listeners.py        the futures and callbacks of one pending result
    record_sizes.py     what of each record its metadata needs

No module here imports asyncio.
"""
