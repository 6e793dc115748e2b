"""Configs that name code, such as ``value.serializer``: an object, a class to make one from, or the name of either.

A name is an import path, ``package.module.Name`` or ``package.module:Name``. The names of Kafka's own classes mean the
same classes here, so a ``.properties`` file works as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aioproducer.errors import ConfigException

_KAFKA = "org.apache.kafka.common.serialization."
_OURS = "aioproducer.serializers."

JAVA_CLASSES: Final[Mapping[str, str]] = {
    _KAFKA + "BooleanSerializer": _OURS + "BooleanSerializer",
    _KAFKA + "ByteArraySerializer": _OURS + "BytesSerializer",
    _KAFKA + "ByteBufferSerializer": _OURS + "BytesSerializer",
    _KAFKA + "BytesSerializer": _OURS + "BytesSerializer",
    _KAFKA + "DoubleSerializer": _OURS + "DoubleSerializer",
    _KAFKA + "FloatSerializer": _OURS + "FloatSerializer",
    _KAFKA + "IntegerSerializer": _OURS + "IntegerSerializer",
    _KAFKA + "LongSerializer": _OURS + "LongSerializer",
    _KAFKA + "ShortSerializer": _OURS + "ShortSerializer",
    _KAFKA + "StringSerializer": _OURS + "StringSerializer",
    _KAFKA + "UUIDSerializer": _OURS + "UUIDSerializer",
    _KAFKA + "VoidSerializer": _OURS + "VoidSerializer",
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": "aioproducer.partitioners.RoundRobinPartitioner",
}
"""Kafka's class → the import path of ours."""

_GIVE = "give an object, a class, an import path 'package.module.Name', or the name of a class of Kafka's own"
_TOKEN_PROVIDER = ".token.provider"
_PATH = r"[A-Za-z_]\w{0,39}([.:][A-Za-z_]\w{0,39})+"


def named(name: str, *, config: str) -> Any:
    """What the import path or Kafka's class name means; ConfigException if there is nothing with that name.

    The error shows the text only if it is an import path: somebody may have given a token instead.
    """
    import pkgutil  # its 1 ms is for those who name a class

    path = JAVA_CLASSES.get(name, name)
    try:
        return pkgutil.resolve_name(path)
    except Exception as error:  # the module is the user's, and may raise anything when it is imported
        failure = error
    if _may_show(name, config):
        raise ConfigException(
            f"config {config!r} is {name!r}, which cannot be imported ({type(failure).__name__}: {failure}): {_GIVE}",
            name=config,
            value=name,
        ) from failure
    raise ConfigException(
        f"config {config!r} is a text that cannot be imported, and is not shown because it may be a secret: {_GIVE}",
        name=config,
    )


def _may_show(name: str, config: str) -> bool:
    """Whether it is an import path. A token may look like one, so of token providers the package must be there."""
    if re.fullmatch(_PATH, name) is None:
        return False
    return not config.endswith(_TOKEN_PROVIDER) or _is_there(name.replace(":", ".").partition(".")[0])


def _is_there(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a specification, such as __main__
        return True


def made(plugin: Any, *, config: str) -> Any:
    """A class called without arguments; anything else as it is. ConfigException if that fails."""
    if not isinstance(plugin, type):
        return plugin
    try:
        return plugin()
    except Exception as error:
        raise ConfigException(
            f"config {config!r} is the class {plugin.__qualname__}, which cannot be made without arguments "
            f"({type(error).__name__}: {error}): give an instance of it",
            name=config,
            value=plugin,
        ) from error
