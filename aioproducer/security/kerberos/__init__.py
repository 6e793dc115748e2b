"""Kerberos tickets of SASL GSSAPI (Kafka's ``KerberosLogin``), through MIT's or Heimdal's library and ``gssapi``.

settings.py        where a client gets its tickets, from its configs
tickets.py         gets a ticket: from a keytab, or a cache
errors.py          what the library's errors mean, in plain words
library.py         the optional library
"""
