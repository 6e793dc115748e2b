"""A producer in a cluster that fits on no machine, in virtual time.

fleet.py              ``fleet``: the sizes, the report
point.py              one size, through all events, in a process of its own
events.py             what happens: a load, restarts, leaders that move, a broker that dies, topics that come and go
load.py               records at a steady rate, and their delays
simulated_fleet.py    the producer, the network, the brokers
fleet_broker.py       a broker that answers from the map and keeps nothing
cluster_map.py        who leads which partition
metered_loop.py       virtual time that goes on by the producer's CPU time
metered_transport.py  the border between producer and network
cpu_meter.py          whose CPU time it is
budget.py             what ten thousand services need, computed
"""
