"""The log of a partition: it validates, appends and finds batches.

a batch → log_validator → producer_state → partition_log → batch_store

The validator reads every record of a batch; large batches are scanned in a thread first. The producer state finds
duplicates and gaps. The log then gives the batch its offsets, puts it into its store, and notes it in the indexes. A
read finds batches by offset, and returns them up to the high watermark or the last stable offset.

partition_log.py      the log
batch_store.py        the interface of what stores its batches, and the store in memory
log_validator.py      decides whether a batch may be appended
appended_batch.py     what the log writes into a batch
record_walk.py        reads the records of a batch, and believes nothing (compiled)
batch_scanner.py      reads large batches in a thread
producer_state.py     the idempotent producers of a partition: duplicates and gaps
transaction_index.py  its open and aborted transactions
transaction_marker.py the control record that ends a transaction
log_index.py          the batch that has an offset or a timestamp
timestamp_search.py   the record of a batch that has a timestamp
leader_epochs.py      the first offset of each leader epoch
log_checkpoint.py     the state of a log, for a restart that need not read it
"""
