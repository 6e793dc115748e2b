"""Kafka's configs that are refused by name, and why: a config that is ignored is worse than none.

A name that ends in a dot stands for all names that begin with it and are not in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_JVM = "it is about the JVM"
_LOGIN_CODE = "it names a class of Java's; for code of your own there is sasl.oauth.token.provider"
_VERIFIES = "it verifies tokens, which the broker does"

BY_ALL: Final[Mapping[str, str]] = {
    "auto.include.jmx.reporter": f"{_JVM}, and gone since Kafka 4.0; see producer.metrics() and metric.reporters",
    "metadata.cluster.check.enable": "it comes with Kafka 4.4",
    "sasl.client.callback.handler.class": _LOGIN_CODE,
    "sasl.kerberos.kinit.cmd": "the Kerberos library gets tickets itself, and no command is run",
    "sasl.login.class": _LOGIN_CODE,
    "sasl.oauthbearer.clock.skew.seconds": _VERIFIES,
    "sasl.oauthbearer.expected.audience": _VERIFIES,
    "sasl.oauthbearer.expected.issuer": _VERIFIES,
    "sasl.oauthbearer.jwks.": _VERIFIES,
    "sasl.oauthbearer.scope.claim.name": _VERIFIES,
    "security.providers": f"{_JVM}: OpenSSL encrypts here",
    "ssl.provider": f"{_JVM}: OpenSSL encrypts here",
    "ssl.secure.random.implementation": f"{_JVM}: OpenSSL has its own",
}

_NO_METRICS = "only producers have metrics"

BY_CLIENTS: Final[Mapping[str, str]] = {
    **BY_ALL,
    "enable.metrics.push": _NO_METRICS,
    "metric.reporters": _NO_METRICS,
    "metrics.": _NO_METRICS,
}

BY_READERS: Final[Mapping[str, str]] = {**BY_CLIENTS, "client.rack": "a reader always asks the leader"}

BY_PRODUCERS: Final[Mapping[str, str]] = BY_ALL
