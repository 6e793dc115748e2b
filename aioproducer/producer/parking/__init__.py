"""Parks records that cannot be appended yet, in the order of their arrival.

parking_lot: for a serializer, for metadata, for memory → record_accumulator
             the batch owns the held_delivery from then on

parking_lot.py       the parked records, and what releases them
waiting_line.py      records that wait for the same thing, oldest first
parked_record.py     one of them
held_delivery.py     its delivery
enqueue_wait.py      waiting until a parked record is in the accumulator
"""
