"""Connections: from a port to whole requests, and from responses to bytes.

acceptor → gate → new_connections → processor → kafka_channel → a request
a response → processor → kafka_channel

socket_server.py      the listeners of a node, and their request handlers
acceptor.py, listening_socket.py   clients are let in
gate.py, connection_gate.py, throttled_sockets.py   who may come in, and when
new_connections.py    from an acceptor to a processor
processor.py          the connections of a listener
channel_builder.py    a socket becomes a channel
kafka_channel.py, channel_mute_state.py   one connection, and why it is not read
memory_pool.py        how much memory requests may take
receive_deadlines.py, idle_expiry.py   requests that do not become whole, and silent connections
listener_changes.py   listeners that come and go
idle_meter.py         how busy somebody is
"""
