"""The log of a partition: validated, appended, found again.

a batch → log_validator → producer_state → partition_log → batch_store

partition_log.py      the log
batch_store.py        where it keeps its batches
log_validator.py, record_walk.py, batch_scanner.py   whether a batch may be appended
producer_state.py     the idempotent producers of a partition
transaction_index.py, transaction_marker.py   its transactions, and the records that end them
log_index.py, timestamp_search.py   where an offset or a timestamp is
leader_epochs.py      where each leader epoch began
log_checkpoint.py     what the log knows of itself, for a restart
"""
