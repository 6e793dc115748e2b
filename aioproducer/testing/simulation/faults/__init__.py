"""The faults of a run.

faults.py      the kinds of faults, and where each applies
chaos.py       faults of the whole cluster
truncation.py  cuts off the end of a log
vanished.py    records that were removed from logs
"""
