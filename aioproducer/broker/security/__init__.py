"""Who a client is: TLS, SASL, and what is logged of failures.

listener_security.py   what a listener demands
tls_handshake.py       how a failed handshake ends
sasl_server_authenticator.py, sasl_state.py   the exchange, and its states
sasl_servers.py        PLAIN and SCRAM
scram_credentials.py   the users of SCRAM
authentication_metrics.py, failed_logins.py   what is counted and logged
"""
