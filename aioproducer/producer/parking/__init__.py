"""Records that cannot be appended yet are parked, in the order they came.

parking_lot: for a serializer, for metadata, for memory → record_accumulator
             the held_delivery is the batch's from then on

parking_lot.py       the parked records, and what lets them go on
waiting_line.py      those that wait for the same thing, oldest first
parked_record.py     one of them
held_delivery.py     its delivery
enqueue_wait.py      waiting until a parked record is in the accumulator
"""
