"""Credentials and TLS: a client's identity.

sasl.py            the mechanisms
credentials.py, jaas.py, password.py   what a client logs in with
expiring_login.py  keeps tokens and tickets fresh
refresh_window.py  when to renew them
tls/               SSL contexts
oauth/             tokens
kerberos/          tickets
"""
