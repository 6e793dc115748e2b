"""``sasl.jaas.config``: credentials in the notation of Java's login modules.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

Like Kafka's ``JaasConfig``: from Java's grammar only the single entry that Kafka allows in a config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password

PLAIN_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS_LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
OAUTHBEARER_LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(
    r"""\s*([\w.\-@]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';=]+))(?=\s|$)""", re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module: its class name and its options, which may be secret."""

    login_module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(config: str, text: Password) -> JaasEntry:
    """The one entry of ``text``, the value of ``config``. A :class:`ConfigException` says what is wrong, without
    showing any of the text."""
    entry = _ENTRY.fullmatch(text.value)
    if entry is None:
        raise _refused(config, 'it is not of the form: LoginModule required name="value" ...;')
    module, _, rest = entry.groups()
    options: dict[str, str] = {}
    position = 0
    while rest[position:].strip():
        option = _OPTION.match(rest, position)
        if option is None:
            raise _refused(config, f'option {len(options) + 1} of {module} is not of the form name="value"')
        name, double, single, bare = option.groups()
        if name in options:
            raise _refused(config, f"option {name} of {module} is there twice")
        quoted = double if double is not None else single
        options[name] = bare if quoted is None else _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), quoted)
        position = option.end()
    return JaasEntry(module, options)


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
