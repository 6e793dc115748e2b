"""Connections: from a port to whole requests, and from responses to bytes.

An acceptor accepts a connection, and the gate admits, delays or refuses it. A processor takes it over and makes a
channel, after the TLS handshake if there is one. The channel splits the bytes of its client into requests; the
processor decodes their headers and passes them to the request channel, one of each connection at a time. Until the
response is written the channel is muted: its next request waits, which keeps requests in order and memory bounded.

socket_server.py      the listeners of a node, and their request handlers
listener_changes.py   opens and closes listeners while the node runs
acceptor.py           accepts connections
processor.py          the connections of a listener
channel_builder.py    a socket becomes a channel
channel/              one connection: its requests, and what bounds its time and memory
gate/                 new connections: admitted, delayed or refused
closed_connections.py log lines for connections that the broker closes
idle_meter.py         measures how much of the time tasks are idle
"""
