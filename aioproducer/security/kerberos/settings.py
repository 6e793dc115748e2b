"""The source of a client's Kerberos tickets: its configs, with Kafka's rules.

``sasl.jaas.config`` names a keytab or a cache, in the notation of Java's ``Krb5LoginModule``:

    com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/a.keytab" principal="a@EXAMPLE.COM";

Without it the Kerberos library's own defaults count: ``KRB5CCNAME``, ``KRB5_CLIENT_KTNAME``, krb5.conf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from aioproducer.errors import ConfigException
from aioproducer.security.jaas import KERBEROS_LOGIN_MODULE, parse_jaas
from aioproducer.security.kerberos.library import gssapi
from aioproducer.security.password import Password
from aioproducer.security.refresh_window import RefreshWindow
from aioproducer.security.sasl import GSSAPI

_JAAS = "sasl.jaas.config"
_SERVICE = "sasl.kerberos.service.name"
_KNOWN = ("useKeyTab", "keyTab", "principal", "useTicketCache", "ticketCache", "serviceName")
_WITHOUT_EFFECT = ("debug", "doNotPrompt", "isInitiator", "refreshKrb5Config", "renewTGT", "storeKey")
"""Options without effect here: no password is prompted for, and krb5.conf is read for each ticket."""


class TicketConfig(Protocol):
    """A client's config (``ClientConfig``), of which only these keys are read."""

    @property
    def sasl_jaas_config(self) -> Password | None: ...
    @property
    def sasl_kerberos_service_name(self) -> str | None: ...
    @property
    def sasl_kerberos_ticket_renew_window_factor(self) -> float: ...
    @property
    def sasl_kerberos_ticket_renew_jitter(self) -> float: ...
    @property
    def sasl_kerberos_min_time_before_relogin(self) -> int: ...
    @property
    def sasl_login_retry_backoff_ms(self) -> int: ...
    @property
    def sasl_login_retry_backoff_max_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KerberosSettings:
    """All that a client needs for GSSAPI. Back-offs are in milliseconds."""

    service: str
    """The first part of the brokers' principals, ``kafka`` in ``kafka/broker.example@EXAMPLE.COM``."""
    principal: str | None
    keytab: str | None
    cache: str | None
    window: RefreshWindow
    retry_backoff_ms: int
    retry_backoff_max_ms: int


def kerberos_settings(config: TicketConfig) -> KerberosSettings:
    """Raises :class:`ConfigException` for what is missing, contradictory or without effect, and without the library."""
    options = _options(config)
    service = _service(config.sasl_kerberos_service_name, options.get("serviceName"))
    principal, keytab, cache = (options.get(name) for name in ("principal", "keyTab", "ticketCache"))
    uses_keytab, uses_cache = _is_true(options, "useKeyTab"), _is_true(options, "useTicketCache")
    if uses_keytab and uses_cache:
        raise _refused(_JAAS, "it has both useKeyTab=true and useTicketCache=true: leave one of them out")
    if options and not uses_keytab and not uses_cache:
        raise _refused(_JAAS, "it has neither useKeyTab=true nor useTicketCache=true, and nobody to ask for a password")
    if uses_keytab and (keytab is None or principal is None):
        raise _refused(_JAAS, f"useKeyTab=true needs {'keyTab' if keytab is None else 'principal'}")
    for name, value, used in (("keyTab", keytab, uses_keytab), ("ticketCache", cache, uses_cache)):
        if value is not None and not used:
            raise _refused(_JAAS, f"its {name} has no effect without use{name[0].upper()}{name[1:]}=true")
    gssapi()
    return KerberosSettings(
        service,
        principal,
        keytab,
        cache,
        RefreshWindow(
            config.sasl_kerberos_ticket_renew_window_factor,
            config.sasl_kerberos_ticket_renew_jitter,
            config.sasl_kerberos_min_time_before_relogin / 1000,
            0,
        ),
        config.sasl_login_retry_backoff_ms,
        config.sasl_login_retry_backoff_max_ms,
    )


def _options(config: TicketConfig) -> Mapping[str, str]:
    if config.sasl_jaas_config is None:
        return {}
    entry = parse_jaas(_JAAS, config.sasl_jaas_config)
    if entry.login_module != KERBEROS_LOGIN_MODULE:
        raise _refused(
            _JAAS, f"its login module is {entry.login_module}, and sasl.mechanism={GSSAPI} has {KERBEROS_LOGIN_MODULE}"
        )
    for name in entry.options:
        if name not in _KNOWN + _WITHOUT_EFFECT:
            raise _refused(_JAAS, f"it has an unknown option {name}")
    return {name: value for name, value in entry.options.items() if name in _KNOWN}


def _service(by_config: str | None, by_jaas: str | None) -> str:
    if by_config is not None and by_jaas is not None and by_config != by_jaas:
        raise _refused(_SERVICE, f"it is {by_config!r}, and serviceName in {_JAAS} is {by_jaas!r}: leave one out")
    service = by_config or by_jaas
    if not service:
        raise _refused(_SERVICE, "it is missing: it is the first part of the brokers' principals, mostly kafka")
    if "/" in service or "@" in service:
        raise _refused(_SERVICE, f"it is {service!r}; only the part before the / of a broker's principal is wanted")
    return service


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
