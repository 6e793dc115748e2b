"""Connections to brokers, with asyncio: one task per broker, and the cluster's metadata.

A client has a link for each broker it needs. The link's task resolves the broker's name, connects, asks for the API
versions and authenticates; from then on, requests go straight through the link to its connection. Metadata says which
broker leads which partition. The admin client and the reader retry each call; the Sender has rules of its own.

client.py                a cluster: a link for each broker, and fresh metadata
broker_link.py           one broker: its API versions, and whether it takes requests
link_task.py             the task that keeps a broker connected
security/                TLS and authentication of connections
connection/              one TCP connection, and the requests under way on it
addresses.py             bootstrap.servers
host_addresses.py        name resolution
in_slices.py             what takes long, with turns of the loop in between
metadata/                a snapshot of the cluster, and what changes it: a moved leader, an answer to a request
coordinators.py          the coordinators of groups and of transactional ids
retrying_client.py       retries the calls of the admin client and the reader
client_lifecycle.py      the start and end of these two
"""
