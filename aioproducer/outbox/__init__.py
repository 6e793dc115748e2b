"""The outbox: rows that a service writes in its own database transactions, relayed to Kafka exactly once.

::

    outbox = Outbox()
    async with connection.transaction():
        await connection.execute("UPDATE orders SET state = 'paid' WHERE id = $1", 42)
        await outbox.write(connection, "orders", b"paid", key=b"42")

    await OutboxRelay("postgresql://localhost/shop", bootstrap_servers="localhost:9092").run()

``docs/outbox.md`` has the promises, ``docs/internals/outbox.md`` the proofs. Needs PostgreSQL 13 or newer; to
relay needs the extra ``outbox``, too. The files:

    outbox.py         the table: its schema, and rows written to it
    row.py            a row, and the record that it becomes
    position.py       which rows are relayed
    marker.py         the position as Kafka has it
    database.py       what the relay asks the database
    transaction.py    rows and position in one transaction of Kafka
    session.py        one life of a relay, from its beginning to the first error
    relay.py          the relay: it waits for its turn, and begins anew after errors
    relay_config.py   the options of a relay
    relay_metrics.py  what a relay counts
    errors.py         what ends a relay

Each name is imported only when it is used: a service that writes rows needs no producer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioproducer.outbox.errors import (
        MissingPositionException,
        OutboxException,
        OutboxSchemaException,
        PositionMismatchException,
        RowRefusedException,
    )
    from aioproducer.outbox.outbox import Outbox
    from aioproducer.outbox.relay import OutboxRelay

_HOMES = {
    "MissingPositionException": "aioproducer.outbox.errors",
    "Outbox": "aioproducer.outbox.outbox",
    "OutboxException": "aioproducer.outbox.errors",
    "OutboxRelay": "aioproducer.outbox.relay",
    "OutboxSchemaException": "aioproducer.outbox.errors",
    "PositionMismatchException": "aioproducer.outbox.errors",
    "RowRefusedException": "aioproducer.outbox.errors",
}

__all__ = [
    "MissingPositionException",
    "Outbox",
    "OutboxException",
    "OutboxRelay",
    "OutboxSchemaException",
    "PositionMismatchException",
    "RowRefusedException",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except AttributeError as error:  # from ... import would drop it, and say no more than that the name is missing
        raise ImportError(f"cannot import {name!r} from {__name__!r}: {error}") from error
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
