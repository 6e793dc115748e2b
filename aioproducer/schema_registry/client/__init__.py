"""The client of a schema registry.

registry_client.py       asks the registry, and remembers what cannot change
registry_config.py       the client's configs
registry_credentials.py  who the client is
registry_requests.py     requests, failover, retries, and errors in plain words
single_flight.py         one request for all who want the same
"""
