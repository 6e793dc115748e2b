"""The users who may log in to a listener with PLAIN: Kafka's ``listener.name.<its name>.plain.sasl.jaas.config``.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="other";

``username`` and ``password`` in it are for connections between brokers, which are not needed here. SCRAM users are
created by AlterUserScramCredentials; their config is accepted, because Kafka requires one, but has no effect. That of
OAUTHBEARER has the options for tokens without a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aioproducer.broker.configs.listeners import LONGEST_NAME, listener_named
from aioproducer.errors import ConfigException
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE, PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, parse_jaas
from aioproducer.security.password import Password
from aioproducer.security.sasl import OAUTHBEARER, PLAIN

_CONFIG = re.compile(
    r"listener[._]name[._](.+)[._](plain|scram-sha-256|scram-sha-512|oauthbearer)[._]sasl[._]jaas[._]config",
    re.IGNORECASE,
)
_USER = "user_"
_UNSECURED = "unsecuredValidator"
_MODULES = {PLAIN: PLAIN_LOGIN_MODULE, OAUTHBEARER: OAUTHBEARER_LOGIN_MODULE}


def jaas_listener(name: str) -> tuple[str, str] | None:
    """The listener and the mechanism in the name of such a config; None for any other name."""
    found = None if len(name) > LONGEST_NAME else _CONFIG.fullmatch(name)
    return None if found is None else (found[1].upper(), found[2].upper())


def users_of(given: Mapping[str, object], listeners: Iterable[str]) -> dict[str, dict[str, Password]]:
    """By listener, the users of PLAIN and their passwords. Raises :class:`ConfigException`, which shows no secret."""
    return {
        listener: {
            option.removeprefix(_USER): Password(secret)
            for option, secret in options.items()
            if option.startswith(_USER)
        }
        for listener, options in _options_of(given, listeners, PLAIN).items()
    }


def token_options_of(given: Mapping[str, object], listeners: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """By listener, the options for tokens without a signature; others, which may be secret, are for clients.

    Raises :class:`ConfigException`, which shows no secret.
    """
    return {
        listener: {option: value for option, value in options.items() if option.startswith(_UNSECURED)}
        for listener, options in _options_of(given, listeners, OAUTHBEARER).items()
    }


def _options_of(
    given: Mapping[str, object], listeners: Iterable[str], wanted_mechanism: str
) -> dict[str, Mapping[str, str]]:
    listeners = list(listeners)
    found: dict[str, Mapping[str, str]] = {}
    for name, value in given.items():
        written, mechanism = jaas_listener(name) or ("", "")
        listener = listener_named(name, written, listeners)
        if not isinstance(value, str | Password):
            raise _refused(name, "it must be of type password")
        entry = parse_jaas(name, Password(value) if isinstance(value, str) else value)
        wanted = _MODULES.get(mechanism, SCRAM_LOGIN_MODULE)
        if entry.login_module != wanted:
            raise _refused(name, f"its login module is {entry.login_module}, but {mechanism} needs {wanted}")
        if mechanism != wanted_mechanism:
            continue
        if listener in found:
            raise _refused(name, "it is given twice")
        found[listener] = entry.options
    return found


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
