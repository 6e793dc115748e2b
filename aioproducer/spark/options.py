"""Options that source and sink share: configs with the prefix ``kafka.``, names, numbers, choices.

Spark's options ignore case: they are looked up, and shown, by their names in lower case.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aioproducer.configs.names import NOT_SHOWN, may_show
from aioproducer.errors import IllegalArgumentException

log = logging.getLogger(__name__)

PREFIX = "kafka."
_BOOTSTRAP = "bootstrap.servers"

SPARKS_OWN = ("checkpointLocation", "queryName")
"""Options that Spark passes on although they are meant for Spark itself."""


def kafka_configs(options: Mapping[str, str], refused: Mapping[str, str] | None = None) -> dict[str, str]:
    """The configs for Kafka's clients, by their dotted names, without the prefix.

    IllegalArgumentException if bootstrap servers are missing, and for configs in ``refused``, which says what to do
    instead, by name.
    """
    configs = {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }
    if not configs.get(_BOOTSTRAP):
        raise IllegalArgumentException(
            f'option "{PREFIX}{_BOOTSTRAP}" is missing: host:port of some brokers, separated by commas'
        )
    for name, instead in (refused or {}).items():
        if name in configs:
            raise IllegalArgumentException(f'option "{PREFIX}{name}" may not be set: {instead}')
    return configs


_UNITS_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
"""Spark's names of times."""


def without_ignored(options: Mapping[str, str], ignored: Mapping[str, str], what: str) -> dict[str, str]:
    """The options without those of Spark's connector that mean nothing to ``what`` and do no harm.

    ``ignored``: why, by name. Each that is given is a warning in the log.
    """
    reasons = {name.lower(): (name, why) for name, why in ignored.items()}
    for given in options:
        if given.lower() in reasons:
            name, why = reasons[given.lower()]
            log.warning('option "%s" of Spark\'s Kafka connector does nothing in this %s: %s', name, what, why)
    return {given: value for given, value in options.items() if given.lower() not in reasons}


def check_known(options: Mapping[str, str], known: Iterable[str], what: str) -> None:
    """IllegalArgumentException for an option that ``what`` (a sink, a source) does not have."""
    names = {name.lower(): name for name in [*known, *SPARKS_OWN]}
    for given in options:
        if given.lower() in names or given.lower().startswith(PREFIX):
            continue
        there = f"it has {', '.join(sorted(known))} and {PREFIX}*"
        shown = f'option "{given}"' if may_show(given, names) else f"option {NOT_SHOWN}"
        raise IllegalArgumentException(f"the {what} has no {shown}; {hint(given, names.values(), there)}")


def hint(given: str, names: Iterable[str], otherwise: str) -> str:
    """Which of the names may be meant; ``otherwise`` if none is like it."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(given.lower(), by_lower, 1)
    return f'did you mean "{by_lower[near[0]]}"?' if near else otherwise


def text(options: Mapping[str, str], name: str) -> str | None:
    """The option's value, or None; IllegalArgumentException if it is empty."""
    value = next((value for given, value in options.items() if given.lower() == name.lower()), None)
    if value is not None and not value.strip():
        raise IllegalArgumentException(f'option "{name}" is empty')
    return value


def number(options: Mapping[str, str], name: str, *, at_least: int = 0) -> int | None:
    """The option as an integer, or None."""
    value = text(options, name)
    if value is None:
        return None
    try:
        wanted = int(value)
    except ValueError:
        wanted = at_least - 1
    if wanted < at_least:
        raise IllegalArgumentException(f'option "{name}" is "{value}"; it must be an integer of at least {at_least}')
    return wanted


def duration_ms(options: Mapping[str, str], name: str, default: int) -> int:
    """The option as milliseconds; it is a number and a unit, as in ``90s``, and without one in milliseconds."""
    value = text(options, name)
    if value is None:
        return default
    found = re.fullmatch(r"\s*([0-9]{1,15})\s*([a-z]*)\s*", value.lower())
    if found is None or found[2] not in _UNITS_MS:
        units = ", ".join(unit for unit in _UNITS_MS if unit)
        raise IllegalArgumentException(f'option "{name}" is "{value}"; it must be a whole number and a unit ({units})')
    return round(int(found[1]) * _UNITS_MS[found[2]])


def one_of(options: Mapping[str, str], name: str, choices: Sequence[str], default: str) -> str:
    """The option as one of the choices, ignoring case."""
    value = text(options, name)
    if value is None:
        return default
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise IllegalArgumentException(f'option "{name}" is "{value}"; it must be {" or ".join(choices)}')


def flag(options: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """The option as true or false."""
    return one_of(options, name, ("true", "false"), str(default).lower()) == "true"
