"""The network in memory.

network.py     names, listeners, connections
conditions.py  speed and sizes of the network
endpoint.py    one end of a connection, as in the kernel
transport.py, server.py
               asyncio's transports and servers, on this network
"""
