"""Pipelining: the time when batches leave, and the number of requests under way, over near and far lines.

linger.py        ``linger``: the default beside fixed settings of linger.ms
pipeline.py      ``pipeline``: pipeline=auto beside fixed settings of linger.ms, over lines of some lengths
pipeline_run.py  one run of it
window.py        ``window``: records per second over a long line, by the in-flight window
in_flight.py     ``in-flight``: 1, 5 and 10 requests in flight to a broker beside the producer
far_broker.py    a broker behind a line that delays every byte
virtual_line.py  such a line in virtual time
"""
