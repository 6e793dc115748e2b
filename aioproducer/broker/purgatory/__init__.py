"""Operations that wait for an event or for their time-out.

A handler that cannot answer yet puts an operation into a purgatory: a fetch waits for records, a write or a deletion
for its replicas. The operation watches keys, such as partitions, and a timing wheel keeps its time-out. Each event of a
key tries the operations that watch it, and completes those whose condition holds. An operation ends exactly once: it is
completed by an event or by its time-out, or abandoned when its client disconnects.

purgatory.py, purgatories.py   one purgatory, and those of a node
delayed_operation.py   an operation
delayed_fetch.py       a fetch that waits for records
delayed_replication.py a request that waits for replicas
timing_wheel.py        time-outs
"""
