"""The coordinators of groups and of transactions.

The consumers of a group join; when all have joined or the time is over, the leader gets the members, and sends the
assignments, which all members get. A member that is silent for too long is removed, and the others join again. Offsets
that a group commits in a transaction are pending until it ends. The transaction coordinator gives each transactional id
its producer id and epoch, keeps the partitions of its transaction, and ends it with a marker in each of them.

group_coordinator.py   joins, waits for members, and removes those that are silent for too long
classic_group.py       one group: its members, their protocol and their assignments
group_memory.py        how much memory members may take
group_offsets.py       the committed offsets of groups
transaction_coordinator.py   who may write under a transactional id, and how its transaction ends
timers.py              timers of members, groups and transactions, called back in slices
expiry.py              when groups, offsets and transactional ids expire
"""
