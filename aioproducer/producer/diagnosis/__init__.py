"""Why records wait or have failed, as values and in words.

    reason.py       the list of reasons
    explanation.py  the answer of ``explain``
    ledger.py, timeline.py   what a record's time was spent on
    failure_log.py  failures that nobody awaits, in few lines
    health.py       a producer's health by its metrics

No module here imports asyncio.
"""
