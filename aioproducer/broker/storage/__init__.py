"""The data directory of the embedded broker.

files.py           the file system, as little of it as is needed
segment.py         one file of a partition's log, and what a good one is
stored_batches.py  the batches of a partition, in segments
"""
