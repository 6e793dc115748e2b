"""``config.providers``: parts of values that stand elsewhere, such as passwords (KIP-297, KIP-421).

    config.providers=file
    sasl.plain.password=${file:/run/secrets/kafka.properties:password}

A reference ``${PROVIDER:PATH:KEY}``, or ``${PROVIDER:KEY}`` without a path, is replaced once: what it stands for is not
looked through again. A provider's class and parameters are ``config.providers.NAME.class`` and
``config.providers.NAME.param.*``. The names ``file``, ``directory`` and ``env`` need no class. Text that refers to a
provider that is not in ``config.providers`` stays as it is, as in Kafka.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from aioproducer.configs.names import NOT_SHOWN, is_dotted
from aioproducer.configs.plugins import made, named
from aioproducer.configs.properties import read_properties
from aioproducer.errors import ConfigException

if TYPE_CHECKING:
    from pathlib import Path

PROVIDERS: Final = "config.providers"

LARGEST_FILE: Final = 1 << 20
"""Bytes of a file with values that are read."""

LARGEST_VALUE: Final = 1 << 20
"""Characters of a value after its references are replaced."""

_REFERENCE = r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}"
_JAVA = "org.apache.kafka.common.config.provider."


class ConfigProvider(Protocol):
    """Where values come from. Optional: ``configure(params)``, called first with the provider's ``param.*`` configs
    without that prefix, and ``close()``, called in the end."""

    def get(self, path: str, keys: set[str]) -> Mapping[str, str]:
        """The values of those ``keys`` that are there, at a ``path``, which is empty if the reference has none."""


class Resolved(str):
    """A value whose references were replaced. ``written`` has them still, and is what messages show."""

    __slots__ = ("written",)
    written: str

    def __repr__(self) -> str:
        return repr(self.written)


def resolved(given: Mapping[str, object]) -> dict[str, object]:
    """The configs with all references replaced, and without the configs of the providers themselves.

    Raises :class:`ConfigException`, which shows no value.
    """
    configs = {name.replace("_", "."): value for name, value in given.items()}
    names = configs.get(PROVIDERS, ())
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise _refused(PROVIDERS, "it must be a list of names")
    own = {name for name in configs if name.startswith(PROVIDERS + ".")}
    known = {name: _provider(name, configs, own) for name in names}
    if own:
        raise _refused(min(own), f"{PROVIDERS} has no such provider, or it has no such config")
    rest = {name: value for name, value in given.items() if not name.replace("_", ".").startswith(PROVIDERS + ".")}
    if not known:
        return rest
    try:
        return {name: _replaced(name.replace("_", "."), value, known) for name, value in rest.items()}
    finally:
        for provider in known.values():
            getattr(provider, "close", lambda: None)()


def _provider(name: str, configs: Mapping[str, object], own: set[str]) -> Any:
    """The configured provider of this name. What configures it leaves ``own``."""
    prefix = f"{PROVIDERS}.{name.replace('_', '.')}."
    params = {config: configs[config] for config in own if config.startswith(prefix + "param.")}
    own.difference_update(params, {prefix + "class"})
    wanted = configs.get(prefix + "class", name)
    if wanted is name and name not in _BUILT_IN:
        raise _refused(prefix + "class", f"it is missing: {name} is none of {', '.join(_BUILT_IN)}")
    of_java = {_JAVA + built_in.__name__: built_in for built_in in _BUILT_IN.values()}
    found: Any = wanted
    if isinstance(wanted, str):
        found = _BUILT_IN.get(wanted) if wanted is name else of_java.get(wanted)
        found = found or named(wanted, config=prefix + "class")
    provider = made(found, config=prefix + "class")
    if not callable(getattr(provider, "get", None)):
        raise _refused(prefix + "class", "its objects need a method get")
    try:
        getattr(provider, "configure", lambda params: None)(
            {config.removeprefix(prefix + "param."): value for config, value in params.items()}
        )
    except (ValueError, re.error) as error:
        raise _refused(prefix + "param", str(error)) from None
    return provider


def _replaced(config: str, value: object, known: Mapping[str, Any]) -> object:
    if not isinstance(value, str) or isinstance(value, Resolved) or config == PROVIDERS:
        return value

    def replacement(reference: re.Match[str]) -> str:
        name, path, key = reference.groups()
        return _looked_up(config, name, known[name], path or "", key) if name in known else reference[0]

    text = re.sub(_REFERENCE, replacement, value)
    if text == value:
        return value
    if len(text) > LARGEST_VALUE:
        raise _refused(config, f"with its references replaced it is longer than {LARGEST_VALUE} characters")
    found = Resolved(text)
    found.written = value
    return found


def _looked_up(config: str, name: str, provider: Any, path: str, key: str) -> str:
    shown = f"${{{name}:{path}:{key}}}" if path else f"${{{name}:{key}}}"
    try:
        found = provider.get(path, {key}).get(key)
    except Exception as error:  # a provider may be the user's; its error may show anything
        why = str(error) if isinstance(error, ValueError) and provider.__module__ == __name__ else type(error).__name__
        raise _refused(config, f"{shown} cannot be replaced: {why}") from None
    if found is None:
        raise _refused(config, f"there is nothing for {shown}")
    if not isinstance(found, str):
        raise _refused(config, f"{shown} is no str")
    return found


def _path(*parts: str) -> Path:
    from pathlib import Path  # it takes a tenth of what the producer takes to import, and few read files

    return Path(*parts)


class _Allowed:
    """``allowed.paths`` (KIP-993): the files and directories that may be read, all if it is not given."""

    def __init__(self) -> None:
        self._allowed: list[Path] | None = None

    def configure(self, params: Mapping[str, object]) -> None:
        if (given := _only(params, "allowed.paths")) is not None:
            self._allowed = [_path(path.strip()).resolve() for path in given.split(",") if path.strip()]

    def _read(self, path: Path) -> str:
        """Raises ValueError."""
        try:
            real = path.resolve(strict=True)
            if self._allowed is not None and not any(real.is_relative_to(allowed) for allowed in self._allowed):
                raise ValueError(f"{path} is not in allowed.paths")
            if not real.is_file():
                raise ValueError(f"{path} is no file")
            with real.open("rb") as file:
                data = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        if len(data) > LARGEST_FILE:
            raise ValueError(f"{path} is larger than {LARGEST_FILE} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None


class FileConfigProvider(_Allowed):
    """Entries of ``.properties`` files: ``${file:/path:key}``."""

    def get(self, path: str, keys: set[str]) -> Mapping[str, str]:
        if not path:
            raise ValueError("it needs the path of a .properties file")
        try:
            return read_properties(self._read(_path(path)))
        except ConfigException as error:
            raise ValueError(f"{path}: {error}") from None


class DirectoryConfigProvider(_Allowed):
    """Whole files: ``${directory:/path:name}``, as secrets are mounted in containers. (KIP-421)"""

    def get(self, path: str, keys: set[str]) -> Mapping[str, str]:
        if not path:
            raise ValueError("it needs the path of a directory")
        found = {}
        for key in keys:
            if not key or key != os.path.basename(key) or key in (os.curdir, os.pardir):
                raise ValueError("its key must be the name of a file")
            if (file := _path(path, key)).exists():
                found[key] = self._read(file)
        return found


class EnvVarConfigProvider:
    """Environment variables: ``${env:NAME}`` (KIP-887); ``allowlist.pattern`` limits their names."""

    def __init__(self) -> None:
        self._allowed: re.Pattern[str] | None = None

    def configure(self, params: Mapping[str, object]) -> None:
        if (given := _only(params, "allowlist.pattern")) is not None:
            self._allowed = re.compile(given)

    def get(self, path: str, keys: set[str]) -> Mapping[str, str]:
        if path:
            raise ValueError("an environment variable has no path")
        for key in keys:
            if self._allowed is not None and self._allowed.fullmatch(key) is None:
                raise ValueError("its name does not match allowlist.pattern")
        return {key: os.environ[key] for key in keys if key in os.environ}


_BUILT_IN: Final[Mapping[str, type[Any]]] = {
    "file": FileConfigProvider,
    "directory": DirectoryConfigProvider,
    "env": EnvVarConfigProvider,
}


def _only(params: Mapping[str, object], name: str) -> str | None:
    """The parameter of this name; ValueError for any other one."""
    for other, value in params.items():
        if other != name:
            shown = f"parameter {other}" if _may_show(other) else f"parameter {NOT_SHOWN}"
            raise ValueError(f"there is no {shown}")
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a str")
    given = params.get(name)
    return given if isinstance(given, str) else None


def _may_show(name: str) -> bool:
    return is_dotted(name) or re.fullmatch("[a-z]{1,24}", name) is not None


def _refused(config: str, why: str) -> ConfigException:
    if _may_show(config):
        return ConfigException(f"config {config!r}: {why}", name=config)
    return ConfigException(f"a config, {NOT_SHOWN}: {why}")
