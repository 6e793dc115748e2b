"""Blame for an aborted transaction: the units that made it fail, and the groups in which units are committed anew.

Pure rules.

A transaction fails as a whole, so most of its units are blameless. A unit with a record that failed with an error of
its own, or with offsets that were refused, is suspected. It is committed anew alone, because its record may only have
shared a batch, or a broker in trouble, with the one that is at fault. If the error names what the unit has asked for
(a topic, a group), a repetition would change nothing: it fails at once. So does a unit whose record was not delivered
in all the time that the unit had. If no unit is suspected, halves are tried, so that one poisoned unit among n costs
about 2·log₂(n) transactions.

Parts are always committed in the order in which their units ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeVar

from aioproducer.errors import DeliveryError, KafkaError, TimeoutException, TransactionAbortedException
from aioproducer.errors.error_code import ErrorCode

M = TypeVar("M")

_OF_THE_TRANSACTION: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""The transaction or its producer id is at fault, whatever is in it; the next one may succeed."""

_OF_OFFSETS: Final = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""The group's coordinator refuses the offsets, and no broker refuses a record with them."""

_CERTAIN: Final = _OF_OFFSETS | {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION}
"""The error names a topic, or a group and its member: the same unit would fail again."""


def is_of_the_transaction(error: KafkaError) -> bool:
    """Whether the error says nothing about the unit that met it."""
    return isinstance(error, TransactionAbortedException) or error.code in _OF_THE_TRANSACTION


def is_of_offsets(error: KafkaError) -> bool:
    """Whether the error is about the offsets of a group."""
    return error.code in _OF_OFFSETS


def is_certain(error: KafkaError) -> bool:
    """Whether the unit that met the error would meet it again."""
    return error.code in _CERTAIN


def is_of_a_late_record(error: DeliveryError) -> bool:
    """Whether a record was not delivered within delivery.timeout.ms; offsets that were not accepted in time name no
    partition, because they are sent together with those of other units."""
    return isinstance(error, TimeoutException) and error.topic_partition is not None


def parts(members: Sequence[M], suspects: Collection[M], *, found: bool) -> list[list[M]]:
    """In which transactions ``members`` are committed anew, in their order: suspects alone, the others together.

    ``found``: the units at fault are known, so that the rest may stay together; otherwise it is halved.
    """
    if not members:
        return []
    if not suspects and not found and len(members) > 1:
        middle = len(members) // 2
        return [list(members[:middle]), list(members[middle:])]
    return list(_isolated(members, suspects))


def _isolated(members: Iterable[M], suspects: Collection[M]) -> Iterable[list[M]]:
    together: list[M] = []
    for member in members:
        if member not in suspects:
            together.append(member)
            continue
        if together:
            yield together
            together = []
        yield [member]
    if together:
        yield together
