"""The Sender: one task that wakes, looks at what is due, and sends it.

alarm → sender_pass: expire, make ready, drain, send → alarm at the next time

sender.py          the task, its start and its end
sender_pass.py     one pass
alarm.py           what wakes it
compressor.py      large batches in worker threads
producer_id.py     InitProducerId
metadata_waits.py  waits for the metadata of a topic
log_inquiry.py     asks a leader for the state of its log
explain.py         why records have not been sent
"""
