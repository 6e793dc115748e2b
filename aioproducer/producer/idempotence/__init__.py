"""Sequences and epochs of an idempotent producer: what keeps the order, and what an answer proves of a batch.

    drained → stamped: producer id, epoch, first sequence → unresolved → resolved, or stamped anew

    producer_ids.py   the producer's id and epoch from the last InitProducerId
    sequences.py      the sequences of one partition

No module here imports asyncio.
"""
