"""Time: clocks, back-offs, and time slices of the event loop.

clock.py          the wall clock
loop_clock.py     the clock of an event loop
time_slice.py     how long one task may hold the loop
backoff.py        exponential back-off
log_interval.py   how often a log line is repeated
"""
