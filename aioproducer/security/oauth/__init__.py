"""Tokens of SASL OAUTHBEARER (KIP-255, KIP-768, KIP-1139).

The settings say where a client gets its tokens: from the user's code, an identity provider, a file, or unsecured from
the configs. The login of the client retrieves the first token when a connection needs one, and all connections share
it. A task of the login renews the token before it expires; an attempt that fails is made again after a back-off. Claims
of a JWT give the time of the renewal, but prove nothing: brokers verify tokens. A refused token is not used again.

settings.py          the source of a client's tokens, from its configs
token_config.py      the configs that it reads
java_classes.py      classes of Java's clients that these may name
retrieval.py         gets a token: from the user's code, an identity provider or a file
http.py              requests to identity providers, bounded in time and size
assertion.py         the JWT that a client signs to prove who it is
unsecured.py         tokens without signature, for tests
token.py             a token
claims.py            what a JWT says, without any check
libraries.py         the optional libraries that all this needs
"""
