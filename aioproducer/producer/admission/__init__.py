"""The way in for records that cannot simply be appended: refused, parked, or handed to the user's code first.

admission.py         hooks to call first, something to wait for, or refused
serializer_lane.py   serializers that must be awaited, one at a time
enqueued.py, enqueuing.py   the result of ``enqueue``: of a record that is in, and of one that is not yet
"""
