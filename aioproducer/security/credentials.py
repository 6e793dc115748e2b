"""A client's name and password, from the five configs that give them."""

from __future__ import annotations

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password
from aioproducer.security.sasl import CLIENT_MECHANISMS, GSSAPI, OAUTHBEARER, PLAIN, Credentials

_JAAS = "sasl.jaas.config"
_USERNAME = "sasl.plain.username"
_PASSWORD = "sasl.plain.password"


def credentials_of(
    protocol: str, mechanism: str | None, jaas: Password | None, username: str | None, password: Password | None
) -> Credentials | None:
    """None for a ``protocol`` without SASL, and for tokens and tickets.

    Raises :class:`ConfigException` for what is missing, given twice, or without effect.
    """
    given = [name for name, value in ((_JAAS, jaas), (_USERNAME, username), (_PASSWORD, password)) if value is not None]
    if not protocol.upper().startswith("SASL_"):
        if given:
            raise _refused(
                given[0], f"with security.protocol={protocol} they are never sent: set SASL_SSL, or remove them"
            )
        return None
    if mechanism in (OAUTHBEARER, GSSAPI):
        if username is not None or password is not None:
            raise _refused(
                _PASSWORD if username is None else _USERNAME, f"sasl.mechanism={mechanism} has no password: remove it"
            )
        return None
    if mechanism is None or mechanism not in CLIENT_MECHANISMS:
        wanted = f"set one of {', '.join(CLIENT_MECHANISMS)}"
        why = f"security.protocol={protocol} needs it" if mechanism is None else f"{mechanism!r} is not supported"
        raise _refused("sasl.mechanism", f"{why}: {wanted}")
    if jaas is not None and len(given) > 1:
        raise _refused(given[1], f"{_JAAS} is there, too: leave one of them out")
    if jaas is not None:
        return _of_jaas(mechanism, jaas)
    if username is None or password is None:
        missing = _PASSWORD if username is not None else _USERNAME
        raise _refused(
            missing, f"it is missing: security.protocol={protocol} needs {_USERNAME} and {_PASSWORD}, or {_JAAS}"
        )
    return Credentials(mechanism, username, password)


def _of_jaas(mechanism: str, jaas: Password) -> Credentials:
    from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, parse_jaas

    entry = parse_jaas(_JAAS, jaas)
    wanted = PLAIN_LOGIN_MODULE if mechanism == PLAIN else SCRAM_LOGIN_MODULE
    if entry.login_module != wanted:
        raise _refused(_JAAS, f"its login module is {entry.login_module}, and sasl.mechanism={mechanism} has {wanted}")
    for option in ("username", "password"):
        if not entry.options.get(option):
            raise _refused(_JAAS, f"it has no {option}")
    return Credentials(mechanism, entry.options["username"], Password(entry.options["password"]))


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
