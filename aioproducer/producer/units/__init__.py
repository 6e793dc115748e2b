"""Units of work: many handlers share one transaction, and each of them is in it as a whole or not at all.

send → hold → end → join the open transaction → commit → settle

units.py             all units of a producer: opens, ends, refuses and closes them
unit.py              one of them, as its user sees it
unit_member.py       the same, as its group sees it
unit_state.py        the states of a unit, and the transitions between them
unit_group.py        which units wait, are in the transaction, or must be committed anew: rules only
unit_blame.py        which units of an aborted transaction made it fail: rules only
unit_memory.py       the bound on the memory of open units: rules only
unit_records.py      a record on its way into a unit, and from there into the accumulator
unit_committer.py    the task that carries out what the group decides
"""
