"""What all nodes of the cluster agree on.

cluster_state.py       topics, leaders, producer ids
cluster_nodes.py       the nodes: which of them live, and where they are reached
topic.py               topics and partitions
replica_assignment.py  which nodes get the replicas of new partitions
cluster_journal.py     the interface that receives every change that must be kept
transaction_metadata.py   a transactional id
committed_offset.py    an offset of a group
cleanup.py             what is cleaned up now and then
"""
