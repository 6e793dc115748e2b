"""Work in slices: all is done once, no work waits for more than a slice of another, and errors reach the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aioproducer.broker.requests import long_work
from aioproducer.broker.requests.long_work import LongWork, Steps, finish
from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.broker.requests.response import NoOpResponse, RequestEnd
from aioproducer.broker.requests.slices import Advance, Slices
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.metadata import MetadataResponse
from aioproducer.protocol.schema import Response
from tests.support.manual_clock import ManualClock


class Channel:
    """A request's channel that calls back at once, as a handler that is idle would, and notes what ends requests."""

    id, listener = "", ""
    user, security_protocol, authenticator = "ANONYMOUS", "PLAINTEXT", None

    def __init__(self) -> None:
        self.address = ""
        self.ended: list[Request] = []
        self.failed: list[str] = []
        self.released: list[int] = []
        self.software: ClientSoftware | None = None

    def release(self, size: int) -> None:
        self.released.append(size)

    def send_response(self, request: Request, response: RequestEnd) -> None:
        self.ended.append(request)

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None:
        try:
            fun()
        except ValueError as error:
            self.failed.append(str(error))

    call_now = send_callback


class UnlimitedSlices(Slices):
    """Any number of works begin in a turn."""

    def begin(self, advance: Advance, seconds: float) -> bool:
        self._begun = 0.0
        return super().begin(advance, seconds)


class Room:
    """Room for changes that a test sets."""

    def __init__(self) -> None:
        self.room = 1
        self.waiting: list[Callable[[], object]] = []

    def when_room(self, callback: Callable[[], object]) -> None:
        self.waiting.append(callback)

    def more(self) -> None:
        self.room = 1
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


class Works:
    """Requests, and the steps that were made for each: a step takes a second of the clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.room = Room()
        self.work = LongWork(UnlimitedSlices(self.clock), self.room)
        self.channel = Channel()
        self.steps: list[str] = []
        self.names: dict[Request, str] = {}

    def begin(
        self,
        name: str,
        count: int,
        error: Exception | None = None,
        *,
        needed: bool = False,
        large: bool = False,
        address: str = "",
    ) -> Request:
        connection = Channel()
        connection.address = address
        request = Request(RequestHeader(3, 12, 1, None), self.channel, connection)
        self.names[request] = name

        def steps() -> Steps[Response | None]:
            for _ in range(count):
                self.steps.append(name)
                self.clock.advance(1)
                yield
            if error is not None:
                raise error
            return MetadataResponse()

        (self.work.run_large if large else self.work.run)(request, steps(), needed=needed)
        return request

    async def until_ended(self, *requests: Request) -> None:
        while len(self.channel.ended) < len(requests) or self.work:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0)
        assert set(self.channel.ended) == set(requests)


def test_finish_does_all_of_it() -> None:
    def steps() -> Steps[int]:
        yield
        yield
        return 3

    assert finish(steps()) == 3


async def test_short_work_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    works = Works()
    monkeypatch.setattr(long_work, "FIRST_SLICE", 10)
    request = works.begin("a", 3)
    assert (works.channel.ended, len(works.work)) == ([request], 0)


async def test_turns_are_taken() -> None:
    works = Works()
    first, second = works.begin("a", 3), works.begin("b", 2)
    assert works.steps == ["a", "b"]
    await asyncio.sleep(0)
    assert works.steps == ["a", "b", "a"], "one slice in one turn of the loop"
    await works.until_ended(first, second)
    assert works.steps == ["a", "b", "a", "b", "a"]


async def test_a_client_that_is_gone_is_worked_for_no_more() -> None:
    works = Works()
    gone, other = works.begin("a", 3), works.begin("b", 2)
    gone.abandon()
    await works.until_ended(other)
    assert works.steps == ["a", "b", "b"]


async def test_needed_work_is_done_even_if_the_client_is_gone() -> None:
    works = Works()
    gone = works.begin("a", 3, needed=True)
    gone.abandon()
    await works.until_ended()
    assert works.steps == ["a", "a", "a"]


async def test_few_large_works_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LARGE_AT_ONCE", 2)
    works = Works()
    requests = [works.begin(name, 3, large=True) for name in "abcd"]
    assert works.steps == ["a", "b"]
    await works.until_ended(*requests)
    assert works.steps == ["a", "b", "a", "b", "a", "b", "c", "d", "c", "d", "c", "d"]


async def test_few_of_the_longest_works_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every work gets a second slice; those that need more wait until one of the longest is over."""
    monkeypatch.setattr(long_work, "LONGEST_AT_ONCE", 2)
    works = Works()
    requests = [works.begin(name, 5) for name in "abcd"]
    short = works.begin("e", 2)
    assert len(works.work) == 5
    await works.until_ended(*requests, short)
    assert "".join(works.steps) == "abcde" + "abcde" + "ababab" + "cdcdcd"


async def test_the_longest_works_that_are_dropped_or_fail_let_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LONGEST_AT_ONCE", 1)
    works = Works()
    dropped = works.begin("a", 9)
    works.begin("b", 4, ValueError("bad"))
    gone, last = works.begin("c", 9), works.begin("d", 5)
    while len(works.steps) < 9:  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0)
    dropped.abandon()
    gone.abandon()
    await works.until_ended(last)
    assert works.channel.failed == ["bad"]
    assert (works.steps.count("b"), works.steps.count("d")) == (4, 5)


async def test_a_large_work_that_is_dropped_or_fails_lets_the_next_one_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LARGE_AT_ONCE", 1)
    works = Works()
    dropped = works.begin("a", 3, large=True)
    works.begin("b", 1, ValueError("bad"), large=True)
    last = works.begin("c", 1, large=True)
    dropped.abandon()
    await works.until_ended(last)
    assert (works.steps, works.channel.failed) == (["a", "b", "c"], ["bad"])


async def test_changes_wait_for_room_and_other_works_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LONGEST_AT_ONCE", 1)
    works = Works()
    change, reading = works.begin("a", 4, needed=True), works.begin("b", 4)
    while len(works.steps) < 3:  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0)
    assert works.steps == ["a", "b", "a"], "one of them takes turns, the other is parked"
    works.room.room = 0
    while len(works.channel.ended) < 1:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert (works.steps, len(works.work)) == (["a", "b", "a", "b", "b", "b"], 1)
    later = works.begin("c", 2, needed=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert "".join(works.steps) == "ababbbc", "the first slice is for every work, and has one step without room"
    works.room.more()
    await works.until_ended(change, reading, later)
    assert "".join(works.steps) == "ababbbc" + "aac"


async def test_a_slice_ends_when_there_is_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "FIRST_SLICE", 10)
    works = Works()
    works.room.room = 0
    change, reading = works.begin("a", 3, needed=True), works.begin("b", 3)
    assert "".join(works.steps) == "abbb"
    works.room.more()
    await works.until_ended(change, reading)
    assert "".join(works.steps) == "abbbaa"


async def test_an_error_is_raised_to_the_handler_and_the_others_go_on() -> None:
    works = Works()
    works.begin("a", 1, ValueError("bad"))
    other = works.begin("b", 2)
    await works.until_ended(other)
    assert works.channel.failed == ["bad"]


async def test_addresses_take_turns() -> None:
    """However many connections a client has, its works do not delay those of another by more than a slice each."""
    works = Works()
    requests = [works.begin(name, 4, address="attacker") for name in "abc"]
    requests.append(works.begin("x", 4, address="other"))
    await works.until_ended(*requests)
    assert "".join(works.steps) == "abcx" + "axbxcx" + "abcabc"


async def test_addresses_take_turns_among_large_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LARGE_AT_ONCE", 1)
    works = Works()
    requests = [works.begin(name, 1, large=True, address="attacker") for name in "abc"]
    requests.append(works.begin("x", 1, large=True, address="other"))
    await works.until_ended(*requests)
    assert "".join(works.steps) == "abxc"


async def test_addresses_take_turns_among_parked_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LONGEST_AT_ONCE", 1)
    works = Works()
    requests = [works.begin(name, 5, address="attacker") for name in "abc"]
    requests.append(works.begin("x", 5, address="other"))
    await works.until_ended(*requests)
    steps = "".join(works.steps)
    assert steps.rindex("x") < steps.rindex("c"), "it is not the last one"


async def test_a_work_begins_later_if_others_have_begun_in_the_same_turn() -> None:
    works = Works()
    works.work = LongWork(Slices(works.clock), works.room)
    requests = [works.begin(name, 3) for name in "abc"]
    assert ("".join(works.steps), len(works.work)) == ("abbcc", 3), "each has a step or two at once"
    await works.until_ended(*requests)
    assert "".join(works.steps[5:7]) == "ba", "those that begin and those that have begun go on in the same turn"
    assert sorted(works.steps) == list("aaabbbccc")


async def test_a_short_request_does_not_wait_for_the_first_slices_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "AT_ONCE", 10)
    works = Works()
    works.work = LongWork(Slices(works.clock), works.room)
    long = [works.begin(str(number), 50, address=str(number)) for number in range(30)]
    short = works.begin("short", 9, address="short")
    assert works.channel.ended == [short]
    assert len(works.steps) == 1 + 29 * 11 + 9
    await works.until_ended(short, *long)


async def test_a_work_that_begins_later_fails_as_others_do() -> None:
    works = Works()
    works.work = LongWork(Slices(works.clock), works.room)
    first = works.begin("a", 1)
    works.begin("b", 2, ValueError("bad"))
    await works.until_ended(first)
    assert works.channel.failed == ["bad"]


async def test_the_response_of_a_long_work_is_encoded_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other works go on between the steps, and a parked one begins only when a response is encoded completely."""
    monkeypatch.setattr(long_work, "LONGEST_AT_ONCE", 1)
    works = Works()
    encoded: list[str] = []

    def encoding(request: Request, response: Response, version: int) -> Steps[None]:
        for _ in range(3):
            works.steps.append(works.names[request].upper())
            yield
        request._channel.send_response(request, NoOpResponse())
        encoded.append(works.names[request])

    monkeypatch.setattr(Request, "_encoding", encoding)
    requests = [works.begin(name, 3) for name in "ab"]
    await works.until_ended(*requests)
    assert "".join(works.steps) == "ab" + "ab" + "a" + "AAA" + "b" + "BBB"
    assert encoded == ["a", "b"]
