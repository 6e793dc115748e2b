"""Connections to brokers, with asyncio: one task per broker, and the cluster's metadata.

client.py                a cluster: a link for each broker, and fresh metadata
broker_link.py           one broker: its API versions, and whether it takes requests
link_task.py             the task that keeps a broker connected
connection.py, connection_protocol.py
                         one TCP connection, and its asyncio protocol
in_flight_request.py     a request without an answer so far
node_api_versions.py     the API versions of a broker
security.py              TLS and authentication of connections
sasl_authenticator.py    the exchange of an authentication
sasl_clients.py          the client's half of each SASL mechanism
addresses.py             bootstrap.servers
host_addresses.py        name resolution
cluster.py               a snapshot of the cluster's metadata
metadata.py              when to request metadata, and what an answer changes
cluster_changes.py       wakes tasks that wait for a change of the cluster
coordinators.py          the coordinators of groups and of transactional ids
supervisor.py            reports tasks that die
retrying_client.py       retries the calls of the admin client and the reader
client_lifecycle.py      the start and end of these two
"""
