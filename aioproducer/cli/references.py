"""References in the values of configs. They keep secrets off command lines, which every user of a machine can see.

As with Kafka's config providers, ``${env:NAME}`` is an environment variable, and ``${file:PATH:KEY}`` an entry of a
``.properties`` file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from aioproducer.cli.options import read_config_file
from aioproducer.errors import ConfigException

_REFERENCE = re.compile(r"\$\{(?:env:(?P<variable>[^}:]+)|file:(?P<path>[^}]+):(?P<key>[^}:]+))\}")


def resolved(configs: Mapping[str, str]) -> dict[str, str]:
    """Replaces the references by their values. Raises :class:`ConfigException`, or OSError for a file."""
    return {name: _REFERENCE.sub(partial(_value, name), value) for name, value in configs.items()}


def _value(config: str, reference: re.Match[str]) -> str:
    variable, path, key = reference["variable"], reference["path"], reference["key"]
    if variable is not None:
        value = os.environ.get(variable)
        where = f"there is no environment variable {variable}"
    else:
        value = read_config_file(Path(path)).get(key)
        where = f"{path} has no entry {key}"
    if value is None:
        raise ConfigException(f"config {config!r}: {where}", name=config)
    return value
