"""Diagnosis: why records wait or have failed, as values and in words.

    reason.py       the list of reasons
    explanation.py  the answer of ``explain``, which ``sender/obstacles.py`` finds
    ledger.py, value_history.py   how a record spent its time
    wording.py      numbers and times in words
    failure_log.py  failures of unawaited records, in few lines
    health.py       a producer's health by its metrics

No module here imports asyncio.
"""
