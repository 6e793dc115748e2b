"""TLS and authentication of a connection, before its first request.

security.py             both, for all connections of a client
sasl_authenticator.py   the exchange of an authentication
sasl_clients.py         the client's half of each SASL mechanism
"""
