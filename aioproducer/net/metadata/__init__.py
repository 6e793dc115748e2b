"""The cluster's metadata: which brokers there are, and which of them leads a partition.

an answer → metadata keeps what is newer → cluster is a new snapshot → cluster_changes wakes the tasks that wait

metadata.py          when to request metadata, and what an answer or a moved leader changes
cluster.py           a snapshot of the cluster's metadata
cluster_changes.py   wakes tasks that wait for a change of the cluster
"""
