"""Admission of records that cannot simply be appended: refused, parked, or passed to the user's code first.

record_entry.py      the slow path of ``send`` and ``enqueue``
admission.py         hooks to call first, something to wait for, or refused
serializer_lane.py   serializers that must be awaited, one at a time
enqueued.py, enqueuing.py   the result of ``enqueue``: for an accepted record, and for one that waits
unawaited.py         the warning of a result that is never awaited
"""
