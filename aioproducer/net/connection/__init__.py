"""One TCP connection to a broker.

connection.py           requests out in order, answers back in the same order
connection_protocol.py  the same as an asyncio protocol
in_flight_request.py    a request without an answer so far
node_api_versions.py    the API versions that the broker told at its start
"""
