"""Transactions: the users' calls, the coordinator, and what the Sender may do meanwhile.

begin → partitions and offsets join → commit or abort → coordinator → the next transaction

transaction_manager.py  begin, commit, abort, and what the Sender may drain
transaction_calls.py    the same as a protocol; a mock has another
timed_transactions.py   measures the calls of users
record_control.py       what a transaction does with its records
state.py, status.py     the states and their transitions; what they allow
coordinator.py          the coordinator, as the producer sees it
two_phases.py           two-phase commit in InitProducerId
marker_pause.py         how long the first records wait for the end of the last transaction
protocol.py             which protocol is used (transaction.version)
partitions.py, offsets.py   what joins the transaction
consequences.py, verdict.py   what an error means
operation.py, operation_slot.py   calls that complete even if their callers give up
"""
