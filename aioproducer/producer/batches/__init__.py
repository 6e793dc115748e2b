"""One batch: records in their final order and almost in their final bytes.

    record → BatchBuffer, charged to the BufferPool → ProducerBatch
           → join: one of several that wait
           → split: the parts of a batch that a broker found too large

    producer_batch.py   one batch, from its first record to its end
    buffer_pool.py      the bound on memory, and the buffers of open batches
    join.py             several batches in one
    split.py            a batch in parts

No module here imports asyncio.
"""
