"""How much clients may ask for, and how many may connect.

quota_managers.py      throttles the clients of a node
client_quotas.py       which quotas users, client ids and addresses have
client_quota_manager.py   how much of them they use
connection_quotas.py   how many connections, and how fast
override_hosts.py      the host names that have limits of their own
rate_quota.py, token_bucket.py   an upper bound for a rate
"""
