"""What a connection needs before its first request: TLS, and the client's authentication.

security.py             both, for all connections of a client
sasl_authenticator.py   the exchange of an authentication
sasl_clients.py         the client's half of each SASL mechanism
"""
