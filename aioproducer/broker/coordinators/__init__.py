"""The coordinators of groups and of transactions.

group_coordinator.py   joins, waits for members, and removes those that are silent for too long
classic_group.py       one group, and how far its members agree
group_offsets.py       what groups have committed
transaction_coordinator.py   who may write under a transactional id, and how its transaction ends
expiry.py              when groups, offsets and transactional ids expire
"""
