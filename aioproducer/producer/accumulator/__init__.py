"""Records become batches, one queue a partition, and wait there for the Sender.

    record → record_accumulator → partition (built_in_partitioner, murmur2)
           → partition_queue → ProducerBatch, in memory from the BufferPool (batches/)
           → Delivery, the caller's handle on the outcome of the batch (delivery/)

    record_accumulator.py   the path of every record
    partition_queue.py      the batches of one partition that are not resolved yet
    incomplete_batches.py   all batches that have not ended
    batch_limits.py         the largest batch that each topic is known to take
    built_in_partitioner.py, murmur2.py   partitions for records without one
    compression_ratio.py    how well a topic compresses
    wall_clock.py           the timestamp of a record that brings none

No module here imports asyncio.
"""
