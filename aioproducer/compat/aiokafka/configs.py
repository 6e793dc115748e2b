"""aiokafka's arguments as configs of this package. Rules only: arguments in, configs out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import fields
from numbers import Real
from typing import Any, Final, cast

from aioproducer.configs.config_def import INT_MAX
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import ConfigException

MISSING: Final = object()
"""An argument that was not given."""

DEFAULT_PORT: Final = 9092
_BUFFER_MEMORY: Final = 33554432
_IN_FLIGHT: Final = 5
_ALL: Final = (-1, "all")
_CONFIGS: Final = frozenset(field.name for field in fields(ProducerConfig))

# They choose as the built-in partitioner does, but run in Python for every record.
_DEFAULT_PARTITIONERS: Final = frozenset(
    {("aiokafka.partitioner", "DefaultPartitioner"), ("kafka.partitioner.default", "DefaultPartitioner")}
)


class ArgumentException(ConfigException, TypeError):
    """An argument that aiokafka refuses with a TypeError: its name is unknown, or its type is wrong."""


def refused(error: ConfigException) -> ConfigException:
    """``error``, as an ArgumentException if there is no such config."""
    if error.name is None or error.name.replace(".", "_") in _CONFIGS:
        return error
    return ArgumentException(str(error), name=error.name, value=error.value)


def whole(name: str, given: object) -> int:
    """A number rounded up: aiokafka takes fractions, and a wait of half a millisecond must not become none."""
    wanted = "a finite number"
    if not isinstance(given, Real):
        raise ArgumentException(f"{name} is {given!r}; it must be {wanted}", name=name.replace("_", "."), value=given)
    try:
        return math.ceil(cast(float, given))
    except (ValueError, OverflowError):  # not a number, or infinite
        raise ConfigException(
            f"{name} is {given!r}; it must be {wanted}", name=name.replace("_", "."), value=given
        ) from None


def whole_numbers(**given: object) -> dict[str, int]:
    """The values of these arguments, each as :func:`whole` has it."""
    return {name: whole(name, value) for name, value in given.items()}


def is_default_partitioner(partitioner: object) -> bool:
    """Whether it is the default of aiokafka or kafka-python, which libraries pass on explicitly."""
    kind = type(partitioner)
    return partitioner is None or (kind.__module__, kind.__qualname__) in _DEFAULT_PARTITIONERS


def addresses(servers: str | Iterable[str]) -> list[str]:
    """``host:port`` of each server; a port that is missing is 9092. Blank entries are left out."""
    named = servers.split(",") if isinstance(servers, str) else servers
    return [_with_port(server.strip()) for server in named if server.strip()]


def _with_port(server: str) -> str:
    if server.count(":") == 1 or "]:" in server or "://" in server:
        return server
    return f"[{server}]:{DEFAULT_PORT}" if ":" in server and not server.startswith("[") else f"{server}:{DEFAULT_PORT}"


def delivery_configs(
    acks: object,
    *,
    enable_idempotence: object,
    transactional_id: str | None,
    transaction_timeout_ms: object,
    linger_ms: int,
    request_timeout_ms: int,
) -> dict[str, Any]:
    """Which replicas must have a record, and how long that may take.

    aiokafka sends one batch of a partition at a time, so retries keep the order even without idempotence. Here one
    request in flight has the same effect. With idempotence aiokafka retries for ever; otherwise it gives up a batch
    after request.timeout.ms.
    """
    given = type(acks) is not object  # libraries pass on aiokafka's own default, which is a plain object, too
    if given and acks not in (0, 1, *_ALL):
        raise ConfigException(f"acks is {acks!r}; it must be 0, 1, -1 or 'all'", name="acks", value=acks)
    idempotent = bool(enable_idempotence) or transactional_id is not None
    if idempotent and given and acks not in _ALL:
        raise ConfigException(
            f"acks={acks!r} is not possible with enable_idempotence=True: it must be 'all'", name="acks", value=acks
        )
    wanted: Any = acks if given else "all" if idempotent else 1
    configs: dict[str, Any] = {
        "acks": "all" if wanted in _ALL else str(int(wanted)),  # True passes for 1
        "enable_idempotence": idempotent,
        "max_in_flight_requests_per_connection": _IN_FLIGHT if idempotent else 1,
        "delivery_timeout_ms": INT_MAX if idempotent else min(linger_ms + request_timeout_ms, INT_MAX),
    }
    if transactional_id is not None:
        timeout_ms = whole("transaction_timeout_ms", transaction_timeout_ms)
        configs |= {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
    return configs


def memory_configs(max_batch_size: int) -> dict[str, Any]:
    """The size of batches, which is the largest, too, and memory for two of them at least."""
    sizes = {"batch_size": max_batch_size, "batch_max_size": max_batch_size}
    return sizes | {"buffer_memory": max(_BUFFER_MEMORY, 2 * max_batch_size)}


def security_configs(
    security_protocol: object,
    *,
    ssl_context: object,
    sasl_mechanism: str,
    sasl_plain_username: str | None,
    sasl_plain_password: str | None,
    sasl_oauth_token_provider: object,
    sasl_kerberos_service_name: str,
    sasl_kerberos_domain_name: str | None,
    others: Collection[str],
) -> dict[str, Any]:
    """How connections are secured; ``others`` are the names of this package's configs that were given as well.

    Configs that the protocol does not use are left out, because aiokafka ignores them.
    """
    if not isinstance(security_protocol, str):
        raise ConfigException(
            f"security_protocol is {security_protocol!r}; it must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
            name="security.protocol",
            value=security_protocol,
        )
    protocol = security_protocol.upper()
    configs: dict[str, Any] = {"security_protocol": security_protocol}
    if protocol.endswith("SSL"):
        if ssl_context is not None:
            configs["ssl_context"] = ssl_context
        elif not any(name.startswith("ssl_") for name in others):
            raise ConfigException(
                f"ssl_context is mandatory with security_protocol={security_protocol!r}: give one, or the configs that "
                "begin with ssl_ (docs/security.md)",
                name="ssl.context",
            )
    if protocol.startswith("SASL"):
        configs["sasl_mechanism"] = sasl_mechanism
        if sasl_plain_username is not None:
            configs["sasl_plain_username"] = sasl_plain_username
        if sasl_plain_password is not None:
            configs["sasl_plain_password"] = sasl_plain_password
        if sasl_oauth_token_provider is not None and sasl_mechanism == "OAUTHBEARER":
            configs["sasl_oauth_token_provider"] = sasl_oauth_token_provider
        if sasl_mechanism == "GSSAPI":
            if sasl_kerberos_domain_name is not None:
                raise ConfigException(
                    "sasl_kerberos_domain_name is not supported: the host in a broker's principal is the one that it "
                    "advertises",
                    name="sasl.kerberos.domain.name",
                )
            configs["sasl_kerberos_service_name"] = sasl_kerberos_service_name
    return configs
