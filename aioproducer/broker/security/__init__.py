"""Authentication of clients by TLS and SASL.

Each listener has its security. With TLS a new connection first completes the handshake. With SASL it gets an
authenticator, which admits only the requests of the authentication until the client has proved who it is; the mechanism
checks its tokens. Failed logins are counted, and logged with a limit.

listener_security.py   what a listener requires of its clients
tls_handshake.py       ends a failed handshake with its TLS alert
sasl_server_authenticator.py   the exchange, and the requests it admits
sasl_state.py          the states of the exchange
sasl_servers.py        the mechanisms PLAIN and SCRAM
oauth_bearer_server.py the mechanism OAUTHBEARER
token_validators.py    the rules for its tokens
jwks.py                the keys they are signed with
scram_credentials.py   the users of SCRAM
authentication_metrics.py   counts of authentications
failed_logins.py       log lines about failed logins
"""
