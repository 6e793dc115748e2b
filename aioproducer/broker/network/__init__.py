"""Connections: from a port to whole requests, and from responses to bytes.

acceptor → gate → new_connections → processor → kafka_channel → a request
a response → processor → kafka_channel

socket_server.py      the listeners of a node, and their request handlers
acceptor.py, listening_socket.py   accept connections
gate.py, connection_gate.py, throttled_sockets.py   admit, delay or refuse connections
new_connections.py    from an acceptor to a processor
processor.py          the connections of a listener
channel_builder.py    a socket becomes a channel
kafka_channel.py, channel_mute_state.py   one connection, and why it is not read
memory_pool.py        how much memory requests may take
closed_connections.py  log lines for connections that the broker closes
receive_deadlines.py, idle_expiry.py   close connections that send too slowly or are idle
listener_changes.py   opens and closes listeners while the node runs
idle_meter.py         measures how much of the time tasks are idle
"""
