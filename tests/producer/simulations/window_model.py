"""A model of a partition's leader: the batches that it may receive from an idempotent producer at any time.

It knows the bytes that leave, what the leader announced, the log and what users were told: nothing of the producer's
own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aioproducer.errors.error_code import ErrorCode

from .broker_model import RETAINED, Request

MAYBE_APPENDED = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)


class WindowModel:
    """One partition: ``log`` is what its leader has, ``deliveries`` what becomes of each record that was accepted.

    A request may arrive for ``arrival`` seconds after its connection has ended; ``now()`` is the time.
    """

    def __init__(
        self, log: list[bytes], deliveries: Mapping[bytes, Any], now: Callable[[], float], arrival: float
    ) -> None:
        self._now = now
        self._arrival = arrival
        self._arrives_until: dict[bytes, float] = {}
        self._log = log
        self._deliveries = deliveries
        self._leader = (-1, -1)
        self._window = RETAINED
        self._narrowest: dict[Request, int] = {}
        """The narrowest window of the leader since each request was sent: what a leader has forgotten does not come
        back when its window grows."""
        self._identity = (-1, -1)
        self._identities: dict[bytes, tuple[int, int]] = {}
        """By record: the producer id and epoch it was sent under last."""
        self._next_sequence = 0
        self._stamped: list[Request] = []
        """New batches of the present epoch, from the first one that is unresolved on, resolved since or not."""
        self._refused: set[bytes] = set()
        """Records of the present epoch that will never be in the log under it: something before them is missing."""
        self._unproven: set[bytes] = set()
        """Records whose refusal proves nothing: the leader's window has shrunk, and may no longer include them."""
        self._lost: set[bytes] = set()
        """Records that were sent to a log before the present one."""
        self._maybe: set[bytes] = set()
        """Records with an attempt of which nobody knows whether it was appended."""
        self._answered: set[bytes] = set()
        """Records whose last attempt was refused, and none of the others may have been appended."""
        self._wire: list[Request] = []

    # What the producer hears

    def led_by(self, leader: int, epoch: int) -> None:
        """Nothing is known of a new leader."""
        if (leader, epoch) != self._leader:
            self._leader = leader, epoch
            self._has_window(RETAINED)

    def has_log(self, log: list[bytes]) -> None:
        """If it is another one, nothing of what was sent is in it."""
        if log is not self._log:
            self._log = log
            self._maybe.clear()
            self._lost.update(value for one in self._stamped for value in one.values)

    def announced(self, node: int, window: int) -> None:
        """An answer has it; a broker that knows no windows announces 5."""
        if node == self._leader[0]:
            self._has_window(window)

    def disconnected(self, node: int) -> None:
        """Another broker may answer at the address the next time."""
        if node == self._leader[0]:
            self._has_window(RETAINED)

    def _has_window(self, window: int) -> None:
        self._window = window
        for request in self._stamped:
            self._narrowest[request] = min(window, self._narrowest[request])

    def ended(self, request: Request, code: ErrorCode) -> None:
        """Nobody waits for the request any more."""
        self._wire.remove(request)
        if code is ErrorCode.NETWORK_EXCEPTION:
            self._arrives_until.update(dict.fromkeys(request.values, self._now() + self._arrival))
        if code is ErrorCode.NONE or code in MAYBE_APPENDED or not self._maybe.isdisjoint(request.values):
            self._answered.difference_update(request.values)
        else:
            self._answered.update(request.values)
        if not self._lost.isdisjoint(request.values):
            self._refused.update(request.values)
        elif code in MAYBE_APPENDED:
            self._maybe.update(request.values)
        elif code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._is_lowest(request):
            if not self._would_be_recognised(request) and not self._behind_a_gap(request):
                self._unproven.update(request.values)
            elif not self._may_arrive_in_order(request):
                self._refused.update(request.values)
                self._maybe.difference_update(request.values)

    def described(self) -> None:
        """The leader has said how far its log has come: what is not there, and cannot arrive any more, is absent."""
        absent = {
            value
            for value in self._unproven.difference(self._log)
            if self._now() >= self._arrives_until.get(value, 0.0)
        }
        self._refused.update(absent)
        self._maybe.difference_update(absent)

    # What the producer sends

    def sent(self, request: Request) -> None:
        identity = request.producer_id, request.epoch
        assert request not in self._wire, "a batch is under way once"
        if self._identities.get(request.values[0]) == identity:
            self._sent_again(request)
        else:
            if identity != self._identity:
                self._begin_epoch(identity)
            self._sent_new(request)
        self._identities.update(dict.fromkeys(request.values, identity))
        self._wire.append(request)

    def _begin_epoch(self, identity: tuple[int, int]) -> None:
        assert identity > self._identity, "epochs are counted upwards"
        assert not any(map(self._in_doubt, self._stamped)), "an epoch begins when nothing before it is in doubt"
        to_send = {value for one in self._stamped for value in one.values if not self._deliveries[value].done()}
        assert to_send.isdisjoint(self._log), "what is in the log goes under no other epoch"
        self._stamped.clear()
        self._narrowest.clear()
        self._maybe.clear()  # attempts of an earlier epoch are fenced
        self._answered.clear()
        self._arrives_until.clear()
        self._lost.clear()
        self._refused.clear()
        self._unproven.clear()
        self._identity = identity
        self._next_sequence = 0

    def _sent_new(self, request: Request) -> None:
        assert not any(map(self._failed, self._stamped)), "after a gap another epoch begins"
        while self._stamped and not self._unresolved(self._stamped[0]):
            del self._narrowest[self._stamped.pop(0)]
        assert len(self._stamped) < self._window, "no new batch beyond the window that the leader has announced"
        assert request.first_sequence == self._next_sequence, "sequences are contiguous"
        self._next_sequence = request.last_sequence + 1
        self._stamped.append(request)
        self._narrowest[request] = self._window

    def _sent_again(self, request: Request) -> None:
        """One at a time, so that they keep to any window on the wire, too; of what was split, a part."""
        assert (request.producer_id, request.epoch) == self._identity, "that epoch is over"
        assert self._refused.isdisjoint(request.values), "it cannot be in order under this epoch"
        waiting = {value for value in self._refused if not self._deliveries[value].done()}
        assert not self._void(request, waiting), "nor can what comes behind it"
        assert self._is_lowest(request), "what goes again is the lowest that is unresolved"

    def _is_lowest(self, request: Request) -> bool:
        """Of those whose answer will show anything: what was refused without proof may wait for the next answer."""
        return not any(
            self._unresolved(one) and not (self._unproven.issuperset(one.values) and one not in self._wire)
            for one in self._stamped
            if one.last_sequence < request.first_sequence
        )

    def _unresolved(self, request: Request) -> bool:
        """A user waits for its end, or a broker may still get it."""
        if self._void(request, self._refused):
            return False
        on_wire = {value for one in self._wire for value in one.values}
        return any(
            value in on_wire or not (self._deliveries[value].done() or value in self._refused)
            for value in request.values
        )

    def _void(self, request: Request, refused: set[bytes]) -> bool:
        """It is not in the log, as it comes behind a batch that is not, or was sent to another log."""
        if request in self._wire:
            return False
        return not self._lost.isdisjoint(request.values) or any(
            value in refused
            for one in self._stamped
            if one.first_sequence < request.first_sequence
            for value in one.values
        )

    def _would_be_recognised(self, request: Request) -> bool:
        """A leader that has it answers as to a duplicate. A window that has shrunk since may no longer include it."""
        since = sum(one.first_sequence >= request.first_sequence for one in self._stamped)
        (whole,) = (
            one for one in self._stamped if one.first_sequence <= request.first_sequence <= one.last_sequence
        )  # it may be a part of what was split
        return since <= self._narrowest[whole]

    def _may_arrive(self, request: Request) -> bool:
        return any(self._now() < self._arrives_until.get(value, 0.0) for value in request.values)

    def _may_arrive_in_order(self, request: Request) -> bool:
        """It, and one before it that was given up; not if all attempts of one of these were refused."""
        if self._behind_a_gap(request) or not self._may_arrive(request):
            return False
        return any(self._failed(one) and self._may_arrive(one) for one in self._before(request))

    def _behind_a_gap(self, request: Request) -> bool:
        """All attempts of an earlier one were refused."""
        return any(self._failed(one) and self._answered.issuperset(one.values) for one in self._before(request))

    def _before(self, request: Request) -> list[Request]:
        return [one for one in self._stamped if one.first_sequence < request.first_sequence]

    def _maybe_there(self, request: Request) -> bool:
        on_wire = {value for one in self._wire for value in one.values}
        return any(value in on_wire or value in self._maybe for value in request.values)

    def _in_doubt(self, request: Request) -> bool:
        return self._unresolved(request) and self._maybe_there(request)

    def _failed(self, request: Request) -> bool:
        ends = [self._deliveries[value] for value in request.values]
        return any(end.done() and end.outcome is not None for end in ends)
