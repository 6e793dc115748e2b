"""The data directory of the embedded broker. A cluster in memory runs none of this.

The cluster reports each change to its store, which puts it into the journal; a partition's log appends to its segments.
The data directory collects these changes, and the committer writes and syncs them in a thread, one group commit after
the other. Answers wait until everything that they reveal is committed. A start reads the journal, then the logs: it
repairs what a crash tore, and refuses what is damaged otherwise. After a clean shutdown it need not read the logs.

storage.py         opens and closes the parts below
files.py           the operations of a file system that the others need
data_directory.py  the journal and the logs, and their changes since the last commit
commit.py          one group commit: what it writes and syncs, in which order
committer.py       starts commits, and calls those that wait for them
durable_apis.py    holds each answer back until what it reveals is committed
cluster_store.py   a cluster as entries of the journal, and its restoration from them
journal.py         the entries by key: topics, offsets, transactions, everything but records; and its rewriting
frames.py          entries in a file: checksummed frames
segments/          the log of a partition: its batches in files, and their recovery
recovery_points.py the offset up to which each log is certainly on disk
repair.py          changes that recovery makes to files, and the error for damage that no crash explains
clean_shutdown.py  the file of a clean shutdown, with the state of every log
"""
