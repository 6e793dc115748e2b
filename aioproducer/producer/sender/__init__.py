"""The Sender: one task that wakes, looks at what is due, and sends it.

alarm → sender_pass: expire, make ready, drain, send → alarm at the next time

sender.py          the task, its start and its end
sender_calls.py    what the rest of the producer asks of it; a mock has another
alarm.py           what wakes it
sender_pass.py     one pass
expiry.py          ends what has waited too long
dispatcher.py      drains and sends what is ready for a node
batch_watch.py     takes new and full batches from the accumulator
cluster_watch.py   takes changes of links and metadata from the client
compressor.py      large batches in worker threads
producer_id.py     InitProducerId
metadata_waits.py  waits for the metadata of a topic
log_inquiry.py     asks a leader for the state of its log
obstacles.py       why records have not been sent
"""
