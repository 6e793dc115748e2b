"""The two phases of an epoch that is written once: what tasks do, what the driver does, and in which order.

In the first phase tasks write their rows, and leave the transactions open. In the second one the driver decides that
all of them are committed, writes that down, and ends them. Whatever crashes when, the decision says what has to be
done, and a marker in each transaction whether it was done. ``docs/spark.md`` has the matrix of crashes.

Brokers are behind ``Ledger`` and ``Rows``: the same code runs against them and in a simulation of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from aioproducer.errors import IllegalStateException
from aioproducer.spark.exactly_once.decision import (
    Decision,
    check_not_begun,
    check_open,
    check_order,
    gone,
    incomplete,
)
from aioproducer.spark.exactly_once.in_parallel import in_parallel
from aioproducer.spark.exactly_once.marker import VERSION, Marker, MarkerMismatchException, is_of
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared, prepared_of

PAUSES: Final = (0.1, 0.3, 1.0, 3.0)
"""Seconds between further looks for the marker of a transaction that was committed."""


class Ledger(Protocol):
    """What brokers know of a write."""

    @property
    def topic(self) -> str:
        """The one that carries the markers."""

    async def decision(self) -> Decision | None:
        """The last one. Waits for one that is being made."""

    async def pause(self, seconds: float) -> None:
        """Waits before the next request."""

    async def markers(self, partitions: Sequence[int]) -> dict[int, Marker | None]:
        """The last ones that were committed with rows of these partitions. Waits for no transaction: another attempt
        may have begun one."""

    async def end(self, prepared: Prepared, *, committed: bool) -> bool:
        """Commits or aborts the transaction. False if it is not open any more, and may have ended otherwise."""

    async def check_remembered(self, prepared: Prepared) -> None:
        """MissingMarkerException if brokers have forgotten the transaction, so that its marker may be gone as well."""


class DriversLedger(Ledger, Protocol):
    """What only the driver does. ``take_over`` comes first."""

    async def take_over(self) -> None:
        """No other driver can decide any more."""

    async def propose(self, decision: Decision) -> None:
        """Sends the decision, which is not in force yet."""

    async def set_back(self, markers: Mapping[int, Marker]) -> None:
        """Sends other markers of partitions, which come in force with what was proposed."""

    async def time_left(self, prepared: Sequence[Prepared]) -> list[int | None]:
        """Milliseconds until brokers abort each of them, None if it is not open. Only after ``propose``."""

    async def decide(self) -> None:
        """Puts what was proposed in force, unless another driver has taken over."""

    async def left_open(self) -> list[Prepared]:
        """All open transactions of the write's tasks, without those that were decided with another marker topic; none
        if another driver has taken over."""

    async def fence(self, prepared: Prepared) -> None:
        """Aborts the transaction of an attempt that may still be at work, which can write no more."""

    async def markers_from(self, partitions: int) -> dict[int, Marker | None]:
        """The markers of partitions from this number on."""


class Rows(Protocol):
    """The rows of a task."""

    async def hold(self) -> Outcome:
        """Writes them, with their marker, in a transaction that stays open."""

    async def skip(self) -> Outcome:
        """Reads them only, to compare them."""


async def write(
    ledger: Ledger,
    rows: Rows,
    epoch: int,
    partition: int,
    where: str,
    check: Callable[[Decision | None], None],
) -> Outcome:
    """What an attempt of a task does. ``check`` raises unless the last decision permits the epoch."""
    last = await ledger.decision()
    check(last)
    if await _is_there(ledger, last, epoch, partition):
        return await rows.skip()
    if last is None or last.version != VERSION:
        check_not_begun(await _marker(ledger, partition), partition, epoch, where)
    held = await rows.hold()
    # A late copy may have written what is decided by now. Here it sees the decision, or the driver sees it: the driver
    # decides before it looks for open transactions.
    if await _is_there(ledger, await ledger.decision(), epoch, partition):
        assert held.prepared is not None
        await ledger.end(held.prepared, committed=False)
        return held._replace(prepared=None)
    return held


async def commit(ledger: DriversLedger, epoch: int, outcomes: Sequence[Outcome], timeout_ms: int, where: str) -> None:
    """What the driver does when all tasks have succeeded."""
    await ledger.take_over()
    last = await ledger.decision()
    check_order(last, epoch, where)
    if last is None or last.epoch < epoch:
        new = Decision.of(epoch, outcomes, where)
        if last is not None:
            await _finish_before(ledger, last, where)
        if last is None or last.version != VERSION:
            for partition, marker in (await ledger.markers_from(new.partitions)).items():
                check_not_begun(marker, partition, epoch, where)
        await _decide(ledger, new, new.prepared, timeout_ms, where)
        return
    lost = await _commit_all(ledger, epoch, last.prepared)
    of_lost = {one.partition for one in lost}
    others = [one for one in prepared_of(outcomes) if one.partition in of_lost]
    await _abort_others(ledger, [*last.prepared, *others])
    last.check(outcomes, where)
    there = await _readable(ledger, epoch, last.prepared, lost, where)
    if lost:
        await _decide(ledger, last.again(lost, there, outcomes, where), others, timeout_ms, where)


async def abort(ledger: DriversLedger, prepared: Iterable[Prepared]) -> None:
    """What the driver does when the epoch has failed: it ends the transactions that its tasks have reported.

    What else is open may be another driver's by now, which is about to decide: the next commit aborts it."""
    decided, _ = await finish(ledger)
    await in_parallel(_without(prepared, decided), lambda one: ledger.end(one, committed=False))


async def finish(ledger: DriversLedger) -> tuple[Sequence[Prepared], Sequence[Prepared]]:
    """Commits what was decided and is open. Returns the transactions that were decided, and those that are lost."""
    await ledger.take_over()
    last = await ledger.decision()
    if last is None:
        return (), ()
    return last.prepared, await _commit_all(ledger, last.epoch, last.prepared)


async def abort_undecided(ledger: DriversLedger) -> None:
    """Aborts all open transactions that were not decided."""
    await ledger.take_over()
    last = await ledger.decision()
    await _abort_others(ledger, () if last is None else last.prepared)


async def set_by_hand(ledger: DriversLedger, epoch: int) -> None:
    """Decides, without any rows, that an epoch is written, and none after it.

    IllegalStateException if a transaction of the last decision is open, because its rows would be lost.
    """
    await ledger.take_over()
    try:
        last = await ledger.decision()
    except MarkerMismatchException:  # what cannot be read is replaced
        last = None
    decided = () if last is None else last.prepared
    new = Decision.set_by_hand(epoch)
    await ledger.propose(new)
    left = await ledger.time_left(decided)
    still_open = [one.partition for one, ms in zip(decided, left, strict=True) if ms is not None]
    if still_open:
        raise IllegalStateException(
            f"the transactions of partitions {still_open} are decided and open, and their rows would be lost; commit "
            "them before: aioproducer spark finish"
        )
    # Markers of later epochs would prove that rows of such an epoch can be read, when it is written again.
    found = await ledger.markers_from(0)
    later = [partition for partition, marker in found.items() if marker is not None and marker.epoch > epoch]
    await ledger.set_back({partition: Marker(epoch, 0, new.digest) for partition in later})
    await ledger.decide()


async def _is_there(ledger: Ledger, last: Decision | None, epoch: int, partition: int) -> bool:
    """Whether a task of the epoch has nothing to write, because its rows were decided and have not been lost."""
    if last is None or last.epoch < epoch:
        return False
    if last.epoch > epoch or partition >= len(last.prepared):
        return True
    return await _is_committed(ledger, epoch, last.prepared[partition])


async def _is_committed(ledger: Ledger, epoch: int, one: Prepared) -> bool:
    """Commits a transaction that was decided; False if it was aborted before."""
    if await ledger.end(one, committed=True):
        return True
    if is_of(await _marker(ledger, one.partition), epoch):
        return True
    await ledger.check_remembered(one)
    return False


async def _marker(ledger: Ledger, partition: int) -> Marker | None:
    return (await ledger.markers([partition]))[partition]


async def _commit_all(ledger: Ledger, epoch: int, prepared: Sequence[Prepared]) -> list[Prepared]:
    """Those that are lost."""
    committed = await in_parallel(prepared, lambda one: _is_committed(ledger, epoch, one))
    return [one for one, there in zip(prepared, committed, strict=True) if not there]


async def _finish_before(ledger: DriversLedger, last: Decision, where: str) -> None:
    """Commits what is left of an earlier epoch before another one is decided.

    Spark runs an epoch of a stream until it is committed. A batch whose driver was killed may not be run again at all.
    """
    markers = await ledger.markers([one.partition for one in last.prepared])
    missing = [one for one in last.prepared if not is_of(markers[one.partition], last.epoch)]
    lost = await _commit_all(ledger, last.epoch, missing)
    earlier = f"{where}, and epoch {last.epoch} before it"
    await _readable(ledger, last.epoch, missing, lost, earlier)
    if lost:
        why = f"that epoch was not run again in time, or topic {ledger.topic!r} was deleted and created anew"
        raise incomplete(lost, earlier, last.partitions, why)


async def _readable(
    ledger: Ledger, epoch: int, prepared: Sequence[Prepared], lost: Sequence[Prepared], where: str
) -> dict[int, Marker | None]:
    """The markers of transactions that were committed: all but the lost ones. EpochLostException if some are gone.

    A coordinator commits a transaction even if its topic was deleted, so only the markers show whether its rows can be
    read. A coordinator answers the same end again when all brokers have written it; before 4.0 the group's may take
    some time longer to show the marker (KAFKA-17507).
    """
    missing = committed = _without(prepared, lost)
    there: dict[int, Marker | None] = {}
    for pause in (None, 0.0, *PAUSES):
        if pause:
            await ledger.pause(pause)
        if pause is not None:
            await in_parallel(missing, lambda one: ledger.end(one, committed=True))
        there |= await ledger.markers([one.partition for one in missing])
        missing = [one for one in committed if not is_of(there[one.partition], epoch)]
        if not missing:
            return there
    raise gone(missing, epoch, where, ledger.topic)


async def _abort_others(ledger: DriversLedger, kept: Iterable[Prepared]) -> None:
    await in_parallel(_without(await ledger.left_open(), kept), ledger.fence)


def _without(prepared: Iterable[Prepared], kept: Iterable[Prepared]) -> list[Prepared]:
    keep = {one.identity for one in kept}
    return [one for one in prepared if one.identity not in keep]


async def _decide(ledger: DriversLedger, new: Decision, fresh: Sequence[Prepared], timeout_ms: int, where: str) -> None:
    await ledger.propose(new)
    check_open(fresh, await ledger.time_left(fresh), timeout_ms, where)
    await ledger.decide()
    lost = await _commit_all(ledger, new.epoch, fresh)
    await _abort_others(ledger, new.prepared)
    await _readable(ledger, new.epoch, fresh, lost, where)
    if lost:
        raise incomplete(lost, where, new.partitions, f"transaction.timeout.ms = {timeout_ms}, or another attempt")
