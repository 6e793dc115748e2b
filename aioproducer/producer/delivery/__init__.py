"""Deliveries: a caller's handles on the outcome of the batches that its records are in.

    delivery.py         one record's delivery
    wait_all.py         many deliveries at once
    produce_result.py   the outcome of a batch, which its deliveries point into
    audience.py         who listens to a producer's results, and what they are told through
    listeners.py        who is told of the end of one result
    record_sizes.py     what of each record its metadata needs

No module here imports asyncio.
"""
