"""Credentials and TLS: a client's identity.

sasl.py            the mechanisms
credentials.py, jaas.py, password.py   what a client logs in with
tls.py             SSL contexts
oauth/             tokens
"""
