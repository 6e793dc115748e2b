"""SSL contexts for clients and brokers, from Kafka's ``ssl.`` configs.

contexts.py        contexts of clients and listeners
tls_source.py      where the context of a new connection comes from
sources.py         fixed contexts, renewed files, the user's factory
settings.py        the configs that clients and brokers share
stores.py          key stores and trust stores of each type
pem.py, jks.py, pkcs12.py   one type each
suites.py          protocols and cipher suites
peer.py            the name in the other side's certificate
"""
