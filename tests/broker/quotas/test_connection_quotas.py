from __future__ import annotations

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.broker.quotas import connection_quotas
from aioproducer.broker.quotas.connection_quotas import (
    ConnectionLimits,
    ConnectionQuotas,
    Decision,
    ListenerLimits,
    Verdict,
)
from aioproducer.broker.quotas.rate_quota import KAFKAS_WINDOW, QuotaWindow
from aioproducer.configs.config_def import INT_MAX

EXTERNAL, INTERNAL = "EXTERNAL", "INTERNAL"
ADMITTED, TOO_MANY, THROTTLED, TURNED_AWAY = Verdict


def quotas_of(limits: ConnectionLimits, *, window: QuotaWindow = KAFKAS_WINDOW) -> ConnectionQuotas[int]:
    quotas = ConnectionQuotas[int](limits, window, protected=INTERNAL)
    quotas.add_listener(EXTERNAL)
    quotas.add_listener(INTERNAL)
    return quotas


def verdicts(decisions: list[Decision[int]]) -> dict[int, Verdict]:
    return {decision.connection: decision.verdict for decision in decisions}


class TestAddress:
    def test_up_to_the_limit(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections_per_ip=2))
        found = [quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)[0].verdict for n in range(3)]
        assert found == [ADMITTED, ADMITTED, TOO_MANY]
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 3, 0.0)[0].verdict is ADMITTED
        quotas.depart(EXTERNAL, "10.0.0.1")
        assert quotas.arrive(EXTERNAL, "10.0.0.1", 4, 0.0)[0].verdict is ADMITTED
        assert quotas.count("10.0.0.1") == 2

    def test_one_counts_over_all_listeners(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections_per_ip=1))
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        assert quotas.arrive(INTERNAL, "10.0.0.1", 1, 0.0)[0].verdict is TOO_MANY

    def test_overrides(self) -> None:
        limits = ConnectionLimits(max_connections_per_ip=2, max_connections_per_ip_overrides={"10.0.0.1": 0})
        quotas = quotas_of(limits)
        assert quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)[0].verdict is TOO_MANY
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 1, 0.0)[0].verdict is ADMITTED

    def test_a_rate_throttles_and_does_not_count_what_it_throttled(self) -> None:
        quotas = quotas_of(ConnectionLimits(), window=QuotaWindow(1.0, 2))
        quotas.configure_ip_rates(INT_MAX, {"10.0.0.1": 2})
        assert [quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)[0].verdict for n in (0, 1)] == [ADMITTED, ADMITTED]
        for n in range(2, 50):
            # 3 over 1 s: 500 ms more make it 2 a second, however many came before.
            assert quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0) == [Decision(EXTERNAL, "10.0.0.1", n, THROTTLED, 500)]
        assert quotas.arrive(EXTERNAL, "10.0.0.1", 50, 0.5)[0].verdict is ADMITTED
        assert quotas.ip_accept_rates(0.5) == {"10.0.0.1": 2.0}
        assert quotas.throttle_times(EXTERNAL, 0.5)[1] == 500

    def test_a_delay_is_capped_to_one_window(self) -> None:
        quotas = quotas_of(ConnectionLimits(), window=QuotaWindow(2.0, 5))
        quotas.configure_ip_rates(1, {})
        quotas.configure_ip_rates(8, {})
        for n in range(64):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
        quotas.configure_ip_rates(1, {})
        assert quotas.arrive(EXTERNAL, "10.0.0.1", 99, 0.0)[0].delay_ms == 2000

    def test_an_address_beyond_its_limits_delays_no_other_address(self) -> None:
        limits = ConnectionLimits(max_connection_creation_rate=1, max_connections_per_ip_overrides={"10.0.0.2": 0})
        quotas = quotas_of(limits, window=QuotaWindow(1.0, 2))
        quotas.configure_ip_rates(INT_MAX, {"10.0.0.1": 1})
        assert quotas.arrive(EXTERNAL, "10.0.0.1", -1, 0.0)[0].verdict is ADMITTED
        for n in range(100):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
            quotas.arrive(EXTERNAL, "10.0.0.2", n, 0.0)
        assert quotas.waiting(EXTERNAL) == 0
        assert quotas.accept_rate(0.0) == 1

    def test_addresses_that_went_quiet_are_forgotten(self) -> None:
        quotas = quotas_of(ConnectionLimits())
        quotas.configure_ip_rates(5, {})
        for n in range(5000):
            quotas.arrive(EXTERNAL, f"10.0.{n // 250}.{n % 250}", n, n / 10)
        assert len(quotas.ip_accept_rates(500.0)) <= 1000


class TestListener:
    def test_a_place_is_waited_for(self) -> None:
        quotas = quotas_of(ConnectionLimits(listeners={EXTERNAL: ListenerLimits(max_connections=1)}))
        assert verdicts(quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)) == {0: ADMITTED}
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 1, 0.0) == []
        assert (quotas.waiting(EXTERNAL), quotas.next_turn(0.0)) == (1, None)
        assert verdicts(quotas.arrive(INTERNAL, "10.0.0.2", 2, 0.0)) == {2: ADMITTED}  # it has limits of its own
        quotas.depart(EXTERNAL, "10.0.0.1")
        assert verdicts(quotas.turn(1.0)) == {1: ADMITTED}

    def test_a_rate_delays_one_after_the_other(self) -> None:
        limits = ConnectionLimits(listeners={EXTERNAL: ListenerLimits(max_connection_creation_rate=10)})
        quotas = quotas_of(limits, window=QuotaWindow(1.0, 2))
        admitted = [n for n in range(12) for decision in quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)]
        assert admitted == list(range(10))
        assert quotas.next_turn(0.0) == pytest.approx(0.1)  # 11 over 1 s: 100 ms more
        assert quotas.turn(0.09) == []
        assert verdicts(quotas.turn(0.1)) == {10: ADMITTED}
        assert quotas.next_turn(0.1) == pytest.approx(0.2)
        assert verdicts(quotas.turn(0.2)) == {11: ADMITTED}
        assert quotas.next_turn(0.2) is None
        assert quotas.throttle_times(EXTERNAL, 0.2)[0] == pytest.approx(100)

    def test_an_address_that_is_at_its_limit_when_its_turn_comes(self) -> None:
        limits = ConnectionLimits(max_connections_per_ip=1, max_connection_creation_rate=1)
        quotas = quotas_of(limits, window=QuotaWindow(1.0, 2))
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 1, 0.0) == []
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 2, 0.0) == []
        assert verdicts(quotas.turn(1.0)) == {1: ADMITTED}
        assert verdicts(quotas.turn(2.0)) == {2: TOO_MANY}


class TestBroker:
    def test_a_client_is_closed_to_make_room_for_the_inter_broker_listener(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections=1))
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        assert quotas.excess == 0
        assert quotas.arrive(EXTERNAL, "10.0.0.2", 1, 0.0) == []
        assert verdicts(quotas.arrive(INTERNAL, "10.0.0.3", 2, 0.0)) == {2: ADMITTED}
        assert quotas.excess == 1
        quotas.depart(EXTERNAL, "10.0.0.1")
        assert quotas.excess == 0
        assert quotas.turn(0.0) == []  # there is still one connection, so no other is admitted

    def test_the_only_listener_is_not_protected(self) -> None:
        quotas = ConnectionQuotas[int](ConnectionLimits(max_connections=1), protected=INTERNAL)
        quotas.add_listener(INTERNAL)
        quotas.arrive(INTERNAL, "10.0.0.1", 0, 0.0)
        assert quotas.arrive(INTERNAL, "10.0.0.1", 1, 0.0) == []

    def test_listeners_take_turns(self) -> None:
        quotas = ConnectionQuotas[int](ConnectionLimits(max_connections=1))
        for listener in (EXTERNAL, INTERNAL):
            quotas.add_listener(listener)
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        for n in (1, 2):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
            quotas.arrive(INTERNAL, "10.0.0.1", -n, 0.0)
        order, served = [], EXTERNAL
        for _ in range(4):
            quotas.depart(served, "10.0.0.1")
            (decision,) = quotas.turn(0.0)
            served = decision.listener
            order.append(decision.connection)
        assert order == [-1, 1, -2, 2]

    def test_a_higher_limit_admits_waiting_connections(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections=1))
        for n in range(4):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
        quotas.configure(ConnectionLimits(max_connections=3))
        assert verdicts(quotas.turn(0.0)) == {1: ADMITTED, 2: ADMITTED}

    def test_a_lower_rate_counts_from_the_next_turn(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connection_creation_rate=1), window=QuotaWindow(1.0, 2))
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        quotas.arrive(EXTERNAL, "10.0.0.1", 1, 0.0)
        quotas.configure(ConnectionLimits())
        assert quotas.next_turn(0.0) == 1.0
        assert verdicts(quotas.turn(1.0)) == {1: ADMITTED}
        assert verdicts(quotas.arrive(EXTERNAL, "10.0.0.1", 2, 1.0)) == {2: ADMITTED}


class TestWaitingRoom:
    def test_addresses_take_turns(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections=1))
        quotas.arrive(EXTERNAL, "10.0.0.1", 0, 0.0)
        for n in range(1, 100):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
        quotas.arrive(EXTERNAL, "10.0.0.2", 1000, 0.0)
        order: list[int] = []
        for _ in range(4):
            quotas.depart(EXTERNAL, "10.0.0.1" if not order or order[-1] < 1000 else "10.0.0.2")
            order += [decision.connection for decision in quotas.turn(0.0)]
        # The first one's turn had come before the other address knocked, and it is that one's before the third.
        assert order == [1, 2, 1000, 3]

    def test_a_full_room_turns_the_address_away_that_has_most_in_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection_quotas, "ROOM", 3)
        quotas = quotas_of(ConnectionLimits(max_connections=1))
        for n in range(5):  # one is in, the turn is another's, three are in the room
            assert TURNED_AWAY not in verdicts(quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)).values()
        assert verdicts(quotas.arrive(EXTERNAL, "10.0.0.2", 100, 0.0)) == {4: TURNED_AWAY}
        assert verdicts(quotas.arrive(EXTERNAL, "10.0.0.1", 5, 0.0)) == {5: TURNED_AWAY}
        assert quotas.waiting(EXTERNAL) == 4

    def test_at_the_end_all_leave(self) -> None:
        quotas = quotas_of(ConnectionLimits(max_connections=1))
        for n in range(4):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
        assert verdicts(quotas.leave_room()) == {1: TURNED_AWAY, 2: TURNED_AWAY, 3: TURNED_AWAY}
        assert quotas.waiting(EXTERNAL) == 0

    def test_a_listener_is_removed(self) -> None:
        quotas = quotas_of(ConnectionLimits(listeners={EXTERNAL: ListenerLimits(max_connections=1)}))
        for n in range(3):
            quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)
        quotas.arrive(INTERNAL, "10.0.0.1", 3, 0.0)
        assert verdicts(quotas.leave_room(EXTERNAL)) == {1: TURNED_AWAY, 2: TURNED_AWAY}
        quotas.depart(EXTERNAL, "10.0.0.1")
        assert quotas.turn(0.0) == []
        quotas.remove_listener(EXTERNAL)
        assert (quotas.total, quotas.count("10.0.0.1")) == (1, 1)
        assert (quotas.listeners, quotas.protected) == ([INTERNAL], None), "the only one is not protected"
        quotas.add_listener(EXTERNAL)
        assert (quotas.listener_count(EXTERNAL), quotas.protected) == (0, INTERNAL)


class Naive:
    """Keeps every moment at which something was counted, and looks at all of them."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.events: list[tuple[float, float]] = []

    def rate_is_above(self, bound: float, now: float) -> bool:
        # Kafka's samples: one begins with the first event a window or more after the beginning of the one before.
        found: list[list[float]] = []
        for when, value in self.events:
            if not found or when - found[-1][0] >= 1.0:
                found.append([when, when, 0.0])
            found[-1][1] = when
            found[-1][2] += value
        alive = [sample for sample in found[-self.samples - 1 :] if now - sample[1] < self.samples]
        elapsed = now - alive[0][0] if alive else 0.0
        elapsed += max(self.samples - 1 - int(elapsed), 0)
        return sum(sample[2] for sample in alive) / max(elapsed, 0.001) > bound


class ConnectionQuotasAgainstNaive(RuleBasedStateMachine):
    """Times are eighths of a second, so that nothing is lost to rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.number = 0
        self.limits = ConnectionLimits(
            max_connections=6,
            max_connection_creation_rate=4,
            max_connections_per_ip=3,
            max_connections_per_ip_overrides={"b": 1},
            listeners={EXTERNAL: ListenerLimits(max_connections=4, max_connection_creation_rate=3)},
        )
        self.ip_limit = {"a": 1}
        self.quotas = quotas_of(self.limits, window=QuotaWindow(1.0, 2))
        self.quotas.configure_ip_rates(INT_MAX, self.ip_limit)
        self.ip_rate = Naive(2)
        self.undecided: dict[int, tuple[str, str]] = {}
        self.open: dict[int, tuple[str, str]] = {}
        self.seen: set[int] = set()

    def take(self, decisions: list[Decision[int]]) -> None:
        for listener, address, connection, verdict, delay_ms in decisions:
            assert connection not in self.seen, "decided twice"
            self.seen.add(connection)
            assert self.undecided.pop(connection) == (listener, address)
            assert (delay_ms > 0) == (verdict is THROTTLED)
            full = self.addresses().count(address) >= self.limits.of_address(address)
            if verdict is ADMITTED:
                assert not full
                assert listener == INTERNAL or len(self.open) < self.limits.max_connections
                self.open[connection] = listener, address
            elif verdict is TOO_MANY:
                assert full
            else:
                assert verdict is THROTTLED

    def addresses(self) -> list[str]:
        return [address for _, address in self.open.values()]

    @rule(listener=st.sampled_from([EXTERNAL, INTERNAL]), address=st.sampled_from("abcd"))
    def arrive(self, listener: str, address: str) -> None:
        self.number += 1
        self.undecided[self.number] = listener, address
        decisions = self.quotas.arrive(listener, address, self.number, self.now)
        if address in self.ip_limit:
            self.ip_rate.events.append((self.now, 1))
            above = self.ip_rate.rate_is_above(self.ip_limit[address], self.now)
            assert above == (bool(decisions) and decisions[0].verdict is THROTTLED)
            if above:
                self.ip_rate.events.append((self.now, -1))
        self.take(decisions)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        connection = data.draw(st.sampled_from(sorted(self.open)))
        self.quotas.depart(*self.open.pop(connection))
        self.take(self.quotas.turn(self.now))

    @rule(eighths=st.integers(1, 20))
    def wait(self, eighths: int) -> None:
        self.now += eighths / 8
        self.take(self.quotas.turn(self.now))

    @rule(most=st.integers(1, 8))
    def configure(self, most: int) -> None:
        self.limits = ConnectionLimits(
            most,
            self.limits.max_connection_creation_rate,
            self.limits.max_connections_per_ip,
            self.limits.max_connections_per_ip_overrides,
            self.limits.listeners,
        )
        self.quotas.configure(self.limits)
        self.take(self.quotas.turn(self.now))

    @invariant()
    def counts_agree(self) -> None:
        assert self.quotas.total == len(self.open)
        for address in "abcd":
            assert self.quotas.count(address) == self.addresses().count(address)
        for listener in (EXTERNAL, INTERNAL):
            of_listener = [name for name, _ in self.open.values()]
            assert self.quotas.listener_count(listener) == of_listener.count(listener)
            waiting = [name for name, _ in self.undecided.values()]
            assert self.quotas.waiting(listener) == waiting.count(listener)
        assert self.quotas.excess == max(len(self.open) - self.limits.max_connections, 0)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """Whoever still waits, waits for a delay of at most one window, or for a place."""
        next_turn = self.quotas.next_turn(self.now)
        assert next_turn is None or self.now < next_turn <= self.now + 1.0
        if next_turn is None and self.undecided:
            full = len(self.open) >= self.limits.max_connections
            external_full = self.quotas.listener_count(EXTERNAL) >= 4
            assert full or external_full

    def teardown(self) -> None:
        for _ in range(200):
            if not self.undecided:
                break
            if self.open:
                self.quotas.depart(*self.open.pop(next(iter(self.open))))
            self.now += 1.0
            self.take(self.quotas.turn(self.now))
        assert not self.undecided, "never decided"


TestAgainstNaive = ConnectionQuotasAgainstNaive.TestCase
TestAgainstNaive.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_without_limits_nothing_waits() -> None:
    quotas = quotas_of(ConnectionLimits())
    for n in range(3000):
        assert quotas.arrive(EXTERNAL, "10.0.0.1", n, 0.0)[0].verdict is ADMITTED
    assert (quotas.total, quotas.next_turn(0.0)) == (3000, None)
    assert math.isnan(quotas.throttle_times(EXTERNAL, 0.0)[0])
