"""New connections: taken from a port, then admitted, delayed or refused.

listening_socket.py    a port on which clients connect
connection_gate.py     admits, delays or refuses them
throttled_sockets.py   keeps some that are refused open for a while
new_connections.py     from an acceptor to a processor
"""
