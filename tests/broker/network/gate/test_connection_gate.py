"""In virtual time: sockets are not needed, what comes in is anything that can be closed."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.broker.network.gate import throttled_sockets
from aioproducer.broker.network.gate.connection_gate import Arrival, ConnectionGate
from aioproducer.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas
from aioproducer.configs.config_def import INT_MAX
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import World, virtual

LISTENER = "PLAINTEXT"


class Socket:
    def __init__(self) -> None:
        self.closed = False

    def setsockopt(self, level: int, option: int, value: int) -> None:
        raise AssertionError("not the gate's business")

    def close(self) -> None:
        self.closed = True


class LoopClock(ManualClock):
    """The time of the running loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Door:
    """A gate, and the connections that it admitted."""

    def __init__(self, limits: ConnectionLimits = ConnectionLimits()) -> None:  # noqa: B008
        self.quotas = ConnectionQuotas[Arrival](limits, protected="INTERNAL")
        self.quotas.add_listener(LISTENER)
        self.admitted: list[Socket] = []
        self.to_close: list[int] = []
        self.gate = ConnectionGate(self.quotas, LoopClock(), self._make_room)

    def _make_room(self, count: int) -> int:
        self.to_close.append(count)
        return count

    def knock(self, address: str = "10.0.0.1", listener: str = LISTENER) -> Socket:
        socket = Socket()
        self.gate.arrive(listener, address, socket, self._admit)
        return socket

    def _admit(self, connection: object, address: str) -> None:
        assert isinstance(connection, Socket)
        self.admitted.append(connection)


@virtual
async def test_one_too_many_is_closed_at_once(world: World) -> None:
    door = Door(ConnectionLimits(max_connections_per_ip=1))
    first, second = door.knock(), door.knock()
    assert (first.closed, second.closed) == (False, True)
    assert door.admitted == [first]
    door.gate.close()


@virtual
async def test_a_throttled_one_is_closed_when_its_time_is_over(world: World) -> None:
    door = Door()
    door.quotas.configure_ip_rates(INT_MAX, {"10.0.0.1": 1})
    for _ in range(10):
        assert not door.knock().closed
    parked = door.knock()
    assert (parked.closed, door.gate.throttled) == (False, 1)
    assert door.knock("10.0.0.2") in door.admitted, "no other address is delayed"
    await asyncio.sleep(0.99)
    assert not parked.closed
    await asyncio.sleep(0.02)
    assert (parked.closed, door.gate.throttled) == (True, 0)
    assert parked not in door.admitted
    door.gate.close()


@virtual
async def test_a_limited_number_of_sockets_is_kept_to_be_closed(world: World) -> None:
    door = Door()
    door.quotas.configure_ip_rates(1, {})
    sockets = [door.knock() for _ in range(10 + throttled_sockets.MAX_THROTTLED + 1)]
    assert sum(socket.closed for socket in sockets) == 1
    assert door.gate.throttled == throttled_sockets.MAX_THROTTLED
    door.gate.close()
    assert all(socket.closed for socket in sockets[10:])


@virtual
async def test_a_thousand_that_are_due_together_leave_the_loop_its_turns(world: World) -> None:
    closed = 0

    class Counted(Socket):
        def close(self) -> None:
            nonlocal closed
            closed += 1

    sockets = throttled_sockets.ThrottledSockets(asyncio.get_running_loop().time)
    for _ in range(throttled_sockets.MAX_THROTTLED):
        sockets.add(Counted(), 1.0)
    await asyncio.sleep(1.0)
    while len(sockets):
        before = closed
        await asyncio.sleep(0)
        assert closed - before <= throttled_sockets.CLOSED_AT_ONCE
    assert closed == throttled_sockets.MAX_THROTTLED


@virtual
async def test_a_connection_that_waits_for_the_rate_is_admitted_when_it_allows(world: World) -> None:
    door = Door(ConnectionLimits(max_connection_creation_rate=1))
    for _ in range(10):
        door.knock()
    late = [door.knock(), door.knock()]
    assert len(door.admitted) == 10
    await asyncio.sleep(1.01)
    assert door.admitted[10:] == late[:1]
    await asyncio.sleep(1.01)
    assert door.admitted[10:] == late
    door.gate.close()


@virtual
async def test_a_waiting_connection_is_admitted_when_one_closes_or_the_limit_rises(world: World) -> None:
    door = Door(ConnectionLimits(max_connections=1))
    first, second, third = door.knock(), door.knock(), door.knock()
    assert door.admitted == [first]
    door.gate.depart(LISTENER, "10.0.0.1")
    assert door.admitted == [first, second]
    door.gate.configure(ConnectionLimits(max_connections=2))
    assert door.admitted == [first, second, third]
    door.gate.close()


@virtual
async def test_a_connection_of_the_inter_broker_listener_displaces_another(world: World) -> None:
    door = Door(ConnectionLimits(max_connections=1))
    door.quotas.add_listener("INTERNAL")
    door.knock()
    assert door.to_close == []
    assert door.knock(listener="INTERNAL") in door.admitted
    assert door.to_close == [1]
    assert door.knock(listener="INTERNAL") in door.admitted
    assert door.to_close == [1, 1], "the first one is on its way out"
    door.gate.depart(LISTENER, "10.0.0.1")
    door.gate.depart("INTERNAL", "10.0.0.1")
    assert door.to_close == [1, 1]
    door.gate.close()


@virtual
async def test_a_lower_limit_closes_the_connections_beyond_it(world: World) -> None:
    door = Door()
    for _ in range(5):
        door.knock()
    door.gate.configure(ConnectionLimits(max_connections=2))
    assert door.to_close == [3]
    door.gate.depart(LISTENER, "10.0.0.1")
    assert door.to_close == [3]
    door.gate.close()


@virtual
async def test_a_closed_gate_admits_no_connection(world: World) -> None:
    door = Door(ConnectionLimits(max_connections=1))
    first, waiting = door.knock(), door.knock()
    door.gate.close()
    late = door.knock()
    assert (first.closed, waiting.closed, late.closed) == (False, True, True)
    door.gate.depart(LISTENER, "10.0.0.1")  # the servers close admitted connections
    assert door.admitted == [first]


@virtual
async def test_an_admission_that_fails_at_once_gives_its_place_to_the_next(world: World) -> None:
    door = Door(ConnectionLimits(max_connections=1))
    gone = Socket()
    door.gate.arrive(LISTENER, "10.0.0.1", gone, lambda connection, address: door.gate.depart(LISTENER, address))
    assert door.knock() in door.admitted
    door.gate.close()


@pytest.mark.parametrize("cycles", [3])
def test_closing_leaves_no_timer(cycles: int) -> None:
    @virtual
    async def run(world: World) -> None:
        door = Door(ConnectionLimits(max_connection_creation_rate=1))
        for _ in range(12 * cycles):
            door.knock()
        door.gate.close()
        assert door.gate._timer is None
        await asyncio.sleep(100)
        assert len(door.admitted) == 10

    run()
