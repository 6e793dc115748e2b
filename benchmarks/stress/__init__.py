"""A producer with very much at once, with little memory, and without its broker.

scale.py           ``scale``: what a record costs beside 1 to 100,000 partitions
threads.py         ``threads``: how many records one loop and producer in each of several threads send
stalls.py          ``stalls``: for how long callbacks hold the event loop
stall_cases.py     what happens to many things at once there
measured_loop.py   an event loop that measures its callbacks
memory.py          ``memory``: what a producer takes when no broker answers
imports.py         ``imports``: what it takes to import the producer
back_pressure.py   ``back-pressure``: more tasks await ``send`` than there is memory for
outage.py          ``outage``: the only broker is down, and back again
canned_broker.py   a broker that gives prepared answers, hostile ones among them
producer_parts.py  the parts inside a producer
"""
