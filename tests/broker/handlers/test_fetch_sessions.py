"""The rules of fetch sessions against a model that does what Kafka's sources say in the plainest way."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aioproducer.broker.handlers import fetch_sessions
from aioproducer.broker.handlers.fetch_sessions import EVICTION_MS, FetchSessionCache, distinct, next_epoch
from aioproducer.configs.config_def import INT_MAX
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NO_ID = UUID(int=0)
BY_NAME, BY_ID = 12, 13
TOPICS = {"a": UUID(int=1), "b": UUID(int=2)}
Named = tuple[str, int]
"""A topic and a partition."""


def topics(partitions: dict[Named, int], version: int = BY_NAME) -> list[FetchTopic]:
    """Partitions with the offsets to fetch from."""
    found = []
    for (name, index), offset in partitions.items():
        by_id = version >= BY_ID
        found.append(
            FetchTopic("" if by_id else name, TOPICS[name] if by_id else NO_ID, [FetchPartition(index, -1, offset)])
        )
    return found


def forgotten(partitions: list[Named], version: int) -> list[ForgottenTopic]:
    by_id = version >= BY_ID
    return [
        ForgottenTopic("" if by_id else name, TOPICS[name] if by_id else NO_ID, [index]) for name, index in partitions
    ]


def ids() -> Callable[[], int]:
    return itertools.count(1).__next__


Log = dict[Named, PartitionData]


def log() -> Log:
    """What there is to read of each partition: nothing yet."""
    return {
        (name, index): PartitionData(index, ErrorCode.NONE, 0, 0, 0, records=b"")
        for name in TOPICS
        for index in range(3)
    }


@dataclass
class Fetched:
    error: int
    session_id: int
    changed: list[Named]
    read: dict[Named, int]
    """The offset from which each partition was read, in order."""


class Node:
    """The cache, and what the handler of Fetch does with it."""

    def __init__(self, slots: int = 3) -> None:
        self.cache = FetchSessionCache(slots, ids())
        self.log = log()
        self.now_ms = 0

    def fetch(
        self,
        session_id: int,
        epoch: int,
        partitions: dict[Named, int],
        forget: list[Named] | None = None,
        *,
        owner: str = "c",
        version: int = BY_NAME,
        throttled: bool = False,
    ) -> Fetched:
        request = FetchRequest(
            session_id=session_id,
            session_epoch=epoch,
            topics=topics(partitions, version),
            forgotten_topics_data=forgotten(forget or [], version),
        )
        context = self.cache.begin(request, version, owner, self.now_ms)
        if isinstance(context, ErrorCode):
            return Fetched(context, 0, [], {})
        names = {topic_id: name for name, topic_id in TOPICS.items()}
        changed, read = [], {}
        for topic in context.topics():
            name = topic.topic or names[topic.topic_id]
            for wanted in topic.partitions:
                read[name, wanted.partition] = wanted.fetch_offset
                if context.includes(topic, wanted, self.log[name, wanted.partition]):
                    changed.append((name, wanted.partition))
        response = context.finish(FetchResponse(), self.now_ms)
        if throttled:
            context.throttled(response)
            changed = []
        return Fetched(response.error_code, response.session_id, changed, read)


@dataclass
class Modelled:
    """A session as the model has it."""

    owner: str
    version: int
    epoch: int
    created_ms: int
    used_ms: int
    used: int
    evictable: bool
    offsets: dict[Named, int] = field(default_factory=dict)
    known: dict[Named, tuple[int, int]] = field(default_factory=dict)
    """The high watermark and the start of the log that the client got last; -1 for an error."""


NAMED = st.tuples(st.sampled_from(sorted(TOPICS)), st.integers(0, 2))
PARTITIONS = st.dictionaries(NAMED, st.integers(0, 5), max_size=4).map(lambda named: dict(sorted(named.items())))
"""Those of a topic one after another, as requests have them."""


class SessionMachine(RuleBasedStateMachine):
    """Connections that fetch with and without sessions, in any order, with right and wrong ids and epochs."""

    MOST_OF_SESSION, MOST_OF_ALL = 4, 8

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(fetch_sessions, "MOST_OF_SESSION", self.MOST_OF_SESSION)
        self.patch.setattr(fetch_sessions, "MOST_OF_ALL", self.MOST_OF_ALL)
        self.node = Node()
        self.sessions: dict[int, Modelled] = {}
        self.uses = itertools.count()

    def teardown(self) -> None:
        self.patch.undo()

    # the model

    def total(self) -> int:
        return sum(len(one.offsets) for one in self.sessions.values())

    def evicts(self, size: int, other_than: int = 0) -> bool:
        now = self.node.now_ms
        oldest = min(self.sessions, key=lambda id: self.sessions[id].used, default=None)
        if oldest is None:
            return False
        if now - self.sessions[oldest].used_ms > EVICTION_MS:
            del self.sessions[oldest]
            return True
        old = [(len(one.offsets), id) for id, one in self.sessions.items() if one.evictable]
        if old and min(old)[0] < size:
            del self.sessions[min(old)[1]]
            return True
        return False

    def touch(self, one: Modelled) -> None:
        one.used, one.used_ms = next(self.uses), self.node.now_ms
        one.evictable = self.node.now_ms - one.created_ms > EVICTION_MS

    def includes(self, one: Modelled, named: Named) -> bool:
        data = self.node.log[named]
        now_known = (data.high_watermark if data.error_code == ErrorCode.NONE else -1, data.log_start_offset)
        news = one.known.get(named, (-1, -1)) != (data.high_watermark, data.log_start_offset)
        one.known[named] = now_known
        return news or bool(data.records) or data.error_code != ErrorCode.NONE

    def full(self, session_id: int, epoch: int, partitions: dict[Named, int], owner: str, version: int) -> Fetched:
        self.sessions.pop(session_id, None)
        fetched = Fetched(ErrorCode.NONE, 0, list(partitions), partitions)
        if epoch == -1:
            return fetched
        for id in [id for id, one in self.sessions.items() if one.owner == owner]:
            del self.sessions[id]
        while len(self.sessions) == 3 or self.total() + len(partitions) > self.MOST_OF_ALL:
            if not self.evicts(len(partitions)):
                return fetched
        now = self.node.now_ms
        one = Modelled(owner, version, 1, now, now, next(self.uses), False, dict(partitions))
        for named in partitions:
            self.includes(one, named)
        fetched.session_id = self.next_id
        self.sessions[self.next_id] = one
        return fetched

    def incremental(
        self, session_id: int, epoch: int, partitions: dict[Named, int], forget: list[Named], version: int
    ) -> Fetched:
        one = self.sessions.get(session_id)
        if one is None:
            return Fetched(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [], {})
        if one.epoch != epoch:
            return Fetched(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [], {})
        if (one.version >= BY_ID) != (version >= BY_ID):
            return Fetched(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, [], {})
        one.offsets.update(partitions)
        for named in forget:
            one.offsets.pop(named, None)
            one.known.pop(named, None)
        if not one.offsets:
            del self.sessions[session_id]
            return Fetched(ErrorCode.NONE, 0, list(partitions), partitions)
        self.touch(one)
        fits = len(one.offsets) <= self.MOST_OF_SESSION
        while self.total() > self.MOST_OF_ALL:
            if not self.evicts(len(one.offsets)):
                fits = False
                break
        if not fits:
            self.sessions.pop(session_id)
            return Fetched(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [], {})
        one.epoch += 1
        read = dict(one.offsets)
        changed = [named for named in read if self.includes(one, named)]
        for named in changed:
            if self.node.log[named].records:
                one.offsets[named] = one.offsets.pop(named)
        return Fetched(ErrorCode.NONE, session_id, changed, read)

    # what happens

    @rule(
        session=st.integers(0, 5),
        epoch=st.sampled_from((0, 0, 0, -1)),
        partitions=PARTITIONS,
        owner=st.sampled_from("vwxyz"),
        version=st.sampled_from((BY_NAME, BY_ID)),
    )
    def full_fetch(self, session: int, epoch: int, partitions: dict[Named, int], owner: str, version: int) -> None:
        session_id = self.id_of(session)
        found = self.node.fetch(session_id, epoch, partitions, owner=owner, version=version)
        self.next_id = found.session_id
        assert found == self.full(session_id, epoch, partitions, owner, version)

    @rule(
        session=st.integers(0, 5),
        wrong=st.sampled_from((0, 0, 0, 0, 0, 1, -1)),
        partitions=PARTITIONS,
        forget=st.lists(NAMED, max_size=3),
        other_version=st.sampled_from((False, False, False, False, True)),
    )
    def incremental_fetch(
        self, session: int, wrong: int, partitions: dict[Named, int], forget: list[Named], other_version: bool
    ) -> None:
        session_id = self.id_of(session)
        one = self.sessions.get(session_id)
        epoch = max(1, (one.epoch if one else 1) + wrong)
        version = one.version if one else BY_NAME
        if other_version:
            version = BY_NAME + BY_ID - version
        found = self.node.fetch(session_id, epoch, partitions, forget, version=version)
        assert found == self.incremental(session_id, epoch, partitions, forget, version)

    def id_of(self, number: int) -> int:
        """The number of a session, or of none if there are fewer sessions."""
        return [*self.sessions, 0, 99, 0, 0, 0, 0][number]

    @rule(
        named=NAMED,
        high_watermark=st.integers(0, 3),
        log_start_offset=st.integers(0, 1),
        records=st.sampled_from((b"", b"", b"x")),
        error=st.sampled_from((ErrorCode.NONE, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)),
    )
    def something_happens_to_a_partition(
        self, named: Named, high_watermark: int, log_start_offset: int, records: bytes, error: ErrorCode
    ) -> None:
        if error:
            high_watermark = log_start_offset = -1
        self.node.log[named] = PartitionData(
            named[1], error, high_watermark, high_watermark, log_start_offset, records=records
        )

    @rule(ms=st.sampled_from((1, EVICTION_MS // 2, EVICTION_MS, EVICTION_MS + 1)))
    def time_passes(self, ms: int) -> None:
        self.node.now_ms += ms

    @invariant()
    def the_cache_knows_its_size(self) -> None:
        cache = self.node.cache
        assert set(cache._sessions) == set(self.sessions)
        assert cache.partitions == self.total() <= self.MOST_OF_ALL
        assert len(cache) <= 3
        assert len({one.owner for one in self.sessions.values()}) == len(cache._owned) == len(cache)
        assert cache._evictable == sorted((len(one.offsets), id) for id, one in self.sessions.items() if one.evictable)


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)

A, B = ("a", 0), ("b", 0)


def test_epochs_begin_anew_with_1() -> None:
    assert (next_epoch(1), next_epoch(INT_MAX)) == (2, 1)


def test_only_changed_partitions_are_included() -> None:
    node = Node()
    first = node.fetch(0, 0, {A: 0, B: 0})
    assert first == Fetched(ErrorCode.NONE, 1, [A, B], {A: 0, B: 0})
    assert node.fetch(1, 1, {}) == Fetched(ErrorCode.NONE, 1, [], {A: 0, B: 0})
    node.log[B] = PartitionData(0, ErrorCode.NONE, 5, 5, 0, records=b"")
    assert node.fetch(1, 2, {A: 3}) == Fetched(ErrorCode.NONE, 1, [B], {A: 3, B: 0})
    assert node.fetch(1, 3, {}, [A]) == Fetched(ErrorCode.NONE, 1, [], {B: 0})


def test_a_partition_that_gave_records_is_read_last_the_next_time() -> None:
    node = Node()
    node.fetch(0, 0, {A: 0, B: 0})
    node.log[A] = PartitionData(0, ErrorCode.NONE, 1, 1, 0, records=b"x")
    assert list(node.fetch(1, 1, {}).read) == [A, B]
    assert list(node.fetch(1, 2, {}).read) == [B, A]


def test_a_partition_is_included_again_after_an_error() -> None:
    node = Node()
    node.fetch(0, 0, {A: 0})
    right = node.log[A]
    node.log[A] = PartitionData(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, right.log_start_offset, records=b"")
    assert [node.fetch(1, epoch, {}).changed for epoch in (1, 2)] == [[A], [A]]
    node.log[A] = right
    assert [node.fetch(1, epoch, {}).changed for epoch in (3, 4)] == [[A], []]


def test_a_diverging_epoch_is_in_every_answer() -> None:
    node = Node()
    node.fetch(0, 0, {A: 0})
    node.log[A].diverging_epoch = EpochEndOffset(0, 1)
    assert [node.fetch(1, epoch, {}).changed for epoch in (1, 2)] == [[A], [A]]


def test_a_throttled_client_gets_later_what_its_answer_left_out() -> None:
    node = Node()
    node.fetch(0, 0, {A: 0})
    node.log[A] = PartitionData(0, ErrorCode.NONE, 7, 7, 0, records=b"")
    assert node.fetch(1, 1, {}, throttled=True) == Fetched(ErrorCode.NONE, 1, [], {A: 0})
    assert [node.fetch(1, epoch, {}).changed for epoch in (2, 3)] == [[A], []]


def test_a_throttled_client_gets_no_session() -> None:
    node = Node()
    assert node.fetch(0, 0, {A: 0}, throttled=True).session_id == 0
    assert len(node.cache) == 0


def test_of_two_requests_at_once_the_first_to_begin_is_too_late() -> None:
    node = Node()
    node.fetch(0, 0, {A: 0})
    request = FetchRequest(session_id=1, session_epoch=1)
    slow = node.cache.begin(request, BY_NAME, "c", 0)
    assert not isinstance(slow, ErrorCode)
    assert node.fetch(1, 2, {}).error == ErrorCode.NONE
    (topic,) = slow.topics()
    node.log[A] = PartitionData(0, ErrorCode.NONE, 9, 9, 0, records=b"")
    assert not slow.includes(topic, topic.partitions[0], node.log[A])
    late = slow.finish(FetchResponse(), 0)
    assert (late.error_code, late.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 1)
    assert node.fetch(1, 3, {}).changed == [A], "the slow one has used up nothing"


def test_a_session_that_was_evicted_while_it_was_read_ends_with_the_next_request() -> None:
    node = Node(slots=1)
    node.fetch(0, 0, {A: 0})
    slow = node.cache.begin(FetchRequest(session_id=1, session_epoch=1), BY_NAME, "c", 0)
    assert not isinstance(slow, ErrorCode)
    node.now_ms = EVICTION_MS + 1
    assert node.fetch(0, 0, {A: 0}, owner="d").session_id == 2
    assert slow.finish(FetchResponse(), 0).session_id == 1
    assert node.fetch(1, 2, {}).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_connection_has_one_session() -> None:
    node = Node(slots=1)
    assert [node.fetch(0, 0, {A: 0}).session_id for _ in range(3)] == [1, 2, 3]
    assert len(node.cache) == 1
    assert node.fetch(0, 0, {A: 0}, owner="d").session_id == 0


@pytest.mark.parametrize("slots", [0, 1])
def test_without_room_there_is_no_session(slots: int) -> None:
    node = Node(slots)
    for number in range(slots):
        node.fetch(0, 0, {A: 0}, owner=str(number))
    assert node.fetch(0, 0, {A: 0, B: 0}) == Fetched(ErrorCode.NONE, 0, [A, B], {A: 0, B: 0})


def test_names_that_no_topic_has_are_not_kept() -> None:
    cache = FetchSessionCache(1, ids())
    long = [FetchTopic("x" * 250, partitions=[FetchPartition(0)])]
    context = cache.begin(FetchRequest(session_epoch=0, topics=long), BY_NAME, "c", 0)
    assert not isinstance(context, ErrorCode)
    assert context.finish(FetchResponse(), 0).session_id == 0
    node = Node()
    node.fetch(0, 0, {A: 0})
    request = FetchRequest(session_id=1, session_epoch=1, topics=long)
    assert node.cache.begin(request, BY_NAME, "c", 0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(node.cache), node.cache.partitions) == (0, 0)


def test_an_id_that_is_taken_is_not_given_again() -> None:
    cache = FetchSessionCache(5, iter((7, 7, 7, 8)).__next__)
    found = [cache.create(owner, {}, 0, uses_topic_ids=True) for owner in "ab"]
    assert found == [7, 8]


def test_a_partition_that_is_named_twice_counts_once() -> None:
    named = [FetchTopic("a", NO_ID, [FetchPartition(0, -1, 1), FetchPartition(1, -1, 2), FetchPartition(0, -1, 3)])]
    (topic,) = distinct(named * 2)
    assert [(one.partition, one.fetch_offset) for one in topic.partitions] == [(0, 3), (1, 2)]
