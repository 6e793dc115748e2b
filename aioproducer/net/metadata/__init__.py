"""The cluster's metadata: which brokers there are, and which of them leads a partition.

an answer → metadata: what is newer than what is known → cluster, a snapshot → cluster_changes: whoever waits for it

metadata.py          when to request metadata, and what an answer or a moved leader changes
cluster.py           a snapshot of the cluster's metadata
cluster_changes.py   wakes tasks that wait for a change of the cluster
"""
