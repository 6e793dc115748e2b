"""Writes that happen once: all rows of an epoch become readable together, or none.

A task writes its rows and a marker in a transaction, leaves it open, and hands it to the driver. The driver checks what
all tasks have prepared, writes its decision durably, and commits or aborts each transaction. A driver that restarts in
between finishes what was decided. A task that is repeated finds the decision, and compares its rows by their digest.

two_phases.py       the steps of tasks and driver, in order
write_once.py       the part of a task
epoch_commit.py     the part of the driver
decision.py         the driver's decision about an epoch
prepared.py         the transactions that tasks leave open
marker.py           the marker that a task's transaction writes besides its rows
content_digest.py   a digest of rows, which shows whether a repeated task has the same ones
ledger.py           looks up and changes the state of a write by requests to brokers
in_parallel.py      many requests at the same time, up to a limit
write_state.py      the state of a write, for people
inspection.py       looks up that state without changing it
checkpoint.py       reads the checkpoint of a streaming query
way_out.py          the command that shows and repairs a write
"""
