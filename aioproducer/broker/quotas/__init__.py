"""Limits for what clients use, and for their connections.

When a request is answered, the quota managers record what it used under the quotas of its user and client id. A client
above its quota is throttled: its answer says for how long, and its connection is not read meanwhile. New connections
pass the connection quotas: they are admitted, closed, or wait for their turn. Quotas are rules of state and ``now``.

quota_managers.py      throttles the clients of a node
client_quotas.py       the quotas of users, client ids and addresses
client_quota_manager.py   how much of a quota clients use on one node
connection_quotas.py   the number and the rate of connections: by address, by listener, in all
override_hosts.py      resolves the host names that have connection limits of their own
rate_quota.py          a bound for a measured rate
token_bucket.py        a bound with credit for bursts
"""
