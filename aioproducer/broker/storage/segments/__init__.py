"""The log of one partition on disk: its batches, in segment files.

stored_batches.py  the batches of a partition, in segments
segment.py         one file of a partition's log, and how it is read and checked
checksums.py       checksums of stretches of a file, to find batches in damaged ones
log_recovery.py    recovers the segments of a log at a start: finds torn and damaged batches
"""
