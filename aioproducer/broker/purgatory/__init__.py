"""Operations that wait for something to happen, or for their time to be up.

purgatory.py, purgatories.py   one, and those of a node
delayed_operation.py   an operation
delayed_fetch.py       a fetch that waits for records
delayed_replication.py a request that waits for replicas
timing_wheel.py        when things fall due
"""
