"""The state that all nodes of the cluster share: topics, leaders, producer ids, configs, credentials.

Handlers of any node change it within a step of the event loop, as Kafka's controller would. The state reports each
change to the cluster's journal, which keeps it if there is a data directory. It elects leaders when nodes start and
stop.

cluster_state.py       topics, leaders, producer ids
cluster_nodes.py       the nodes: which are alive, their addresses, what they coordinate
topic.py               topics and partitions
replica_assignment.py  assigns the replicas of new partitions to nodes
cluster_journal.py     the interface that receives every change
transaction_metadata.py   a transactional id and the state of its transaction
committed_offset.py    a committed offset of a group
cleanup.py             removes expired items at intervals, in slices
"""
