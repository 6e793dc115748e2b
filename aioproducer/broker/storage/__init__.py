"""The data directory of the embedded broker. Nothing of it runs without one.

files.py           the file system: only what is needed of it
segment.py         one file of a partition's log, and what a good one is
recovery_points.py how far each log was certainly on disk
log_reader.py      what a start makes of the segments it finds
repair.py          what it then changes in them
damage.py          what it refuses
stored_batches.py  the batches of a partition, in segments
frames.py          entries by key, as files have them
journal.py         the entries: topics, offsets, transactions, everything that is not a record
journal_copy.py    their file written anew, a piece at a time
cluster_store.py   what these entries are, and how a restart uses them
data_directory.py  both of them, and what has changed since the last commit
commit.py          one group commit: what is written, in which order, and synced
committer.py       when commits happen, and who waits for them
clean_shutdown.py  what a clean shutdown leaves, so that the next start need not read every batch
durable_apis.py    answers that wait for the commit of what they reveal
storage.py         opening and closing all this
"""
