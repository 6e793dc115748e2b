"""The users who may log in to a listener with PLAIN: Kafka's ``listener.name.<its name>.plain.sasl.jaas.config``.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="other";

``username`` and ``password`` in it are for connections between brokers, which are not needed here. SCRAM users are
created by AlterUserScramCredentials; their config is accepted, because Kafka requires one, but has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aioproducer.broker.configs.listeners import LONGEST_NAME, listener_named
from aioproducer.errors import ConfigException
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, parse_jaas
from aioproducer.security.password import Password
from aioproducer.security.sasl import PLAIN

_CONFIG = re.compile(
    r"listener[._]name[._](.+)[._](plain|scram-sha-256|scram-sha-512)[._]sasl[._]jaas[._]config", re.IGNORECASE
)
_USER = "user_"


def jaas_listener(name: str) -> tuple[str, str] | None:
    """The listener and the mechanism of a config with this name; None if it is not such a name."""
    found = None if len(name) > LONGEST_NAME else _CONFIG.fullmatch(name)
    return None if found is None else (found[1].upper(), found[2].upper())


def users_of(given: Mapping[str, object], listeners: Iterable[str]) -> dict[str, dict[str, Password]]:
    """By listener, the users and their passwords. Raises :class:`ConfigException`, which shows no secret."""
    listeners = list(listeners)
    users: dict[str, dict[str, Password]] = {}
    for name, value in given.items():
        written, mechanism = jaas_listener(name) or ("", "")
        listener = listener_named(name, written, listeners)
        if not isinstance(value, str | Password):
            raise _refused(name, "it must be of type password")
        entry = parse_jaas(name, Password(value) if isinstance(value, str) else value)
        wanted = PLAIN_LOGIN_MODULE if mechanism == PLAIN else SCRAM_LOGIN_MODULE
        if entry.login_module != wanted:
            raise _refused(name, f"its login module is {entry.login_module}, and {mechanism} has {wanted}")
        if mechanism != PLAIN:
            continue
        if listener in users:
            raise _refused(name, "it is given twice")
        users[listener] = {
            option.removeprefix(_USER): Password(secret)
            for option, secret in entry.options.items()
            if option.startswith(_USER)
        }
    return users


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
