"""HTTP services that produce: requests per second, transactions by request, and what becomes of requests in trouble.

services.py      ``services``: the parts below, in one report
speed.py         requests per second of a service on each client
instructions.py  instructions per request, counted by valgrind
trouble.py       a service whose broker restarts, and which is terminated
units.py         ``units``: each request an atomic write to two topics
app.py           the service, the same on each client
clients.py       the clients that it runs on
unit_clients.py  the ways in which it writes to two topics
process.py       a service in a process of its own
http_load.py     the clients of a service
callgrind.py     valgrind's counter of instructions
"""
