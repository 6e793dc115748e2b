"""The data directory of the embedded broker. Nothing of it runs without one.

files.py           the file system, as little of it as is needed
segment.py         one file of a partition's log, and what a good one is
stored_batches.py  the batches of a partition, in segments
journal.py         entries by key: topics, offsets, transactions, whatever is no record
cluster_store.py   what these entries are, and what a restart makes of them
data_directory.py  both of it, and what has changed since the last commit
commit.py          one group commit: what is written, in which order, and synced
committer.py       when commits happen, and who waits for them
clean_shutdown.py  what is left behind for a start that need not read every batch
durable_apis.py    answers that wait for the commit of what they tell
storage.py         opening and closing all this
"""
