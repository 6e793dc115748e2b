"""Writes docs/configuration.md from the tables of configs: ``python scripts/configuration.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from aioproducer.config import UNSUPPORTED, ProducerConfig
from aioproducer.config_def import ConfigKey, table

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

The producer's configs in Kafka's names: `KafkaProducer(linger_ms=5)` or
`KafkaProducer.from_config({"linger.ms": 5})`. A name that is not in this table, and a value that is not possible, raise
`ConfigException`. Written by `python scripts/configuration.py` from `aioproducer/config.py`; do not edit.

| config | type | default | allowed | what it does |
|---|---|---|---|---|
"""

TAIL = """
## Kafka's configs that this version does not have

Giving one of these is an error, as a config that is ignored is worse than none (a name that ends in a dot stands for
all that begin with it):
"""


def row(key: ConfigKey) -> str:
    default = "required" if key.default is dataclasses.MISSING else f"`{_text(key.default)}`"
    return f"| `{key.name}` | {key.type.value} | {default} | {key.valid.text} | {key.doc} |"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def page(keys: Iterable[ConfigKey], unsupported: Iterable[str]) -> str:
    """The whole page."""
    names = "\n".join(f"- `{name}`" for name in sorted(unsupported))
    return HEAD + "\n".join(map(row, keys)) + "\n" + TAIL + "\n" + names + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(table(ProducerConfig).values(), UNSUPPORTED))
