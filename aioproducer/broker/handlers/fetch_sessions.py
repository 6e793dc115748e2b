"""Fetch sessions (KIP-227): the broker remembers what a client fetches, so that each further request names only what is
to change, and each response only what has.

A request with epoch 0 opens a session, and one with -1 does not; both are full fetches, and end the session that
they name. Epochs from 1 on count the incremental fetches of a session. Follows Kafka's ``FetchSession.scala``. There
are no followers that fetch, so no session is privileged; and no shards, which keep the locks of threads apart.

Not in Kafka: a session and all sessions together have a bounded number of partitions, and a connection has one session
at most. A client that gets no session continues with full fetches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from aioproducer.broker.state.topic import MAX_NAME_LENGTH
from aioproducer.configs.config_def import INT_MAX
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.sensor import Sensor
from aioproducer.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1

EVICTION_MS = 120_000
"""A session that was not used for longer than this makes room for any other, and one that is older for a larger one."""

MOST_OF_SESSION = 5_000
"""Partitions of a session."""

MOST_OF_ALL = 100_000
"""Partitions of all sessions of a node: some 40 MB."""

_TOPIC_ID_VERSION = 13

Key = tuple[str, UUID, int]
"""Requests name a topic by its name or, from version 13 on, by its id; the other part is empty."""


def next_epoch(epoch: int) -> int:
    return 1 if epoch == INT_MAX else epoch + 1


class Wanted(Protocol):
    """What is fetched of a partition, named as in :class:`FetchPartition`."""

    @property
    def partition(self) -> int: ...
    @property
    def current_leader_epoch(self) -> int: ...
    @property
    def fetch_offset(self) -> int: ...
    @property
    def last_fetched_epoch(self) -> int: ...
    @property
    def partition_max_bytes(self) -> int: ...


class CachedPartition:
    """What a session fetches of a partition (:class:`Wanted`), and what the client knows of it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: WantedTopic, wanted: Wanted) -> None:
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.partition = wanted.partition
        self.high_watermark = self.log_start_offset = -1
        self.update(wanted)

    @property
    def key(self) -> Key:
        return self.topic, self.topic_id, self.partition

    def update(self, wanted: Wanted) -> None:
        self.current_leader_epoch = wanted.current_leader_epoch
        self.fetch_offset = wanted.fetch_offset
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.partition_max_bytes = wanted.partition_max_bytes

    def includes(self, data: PartitionData) -> bool:
        """Whether the response must include this data. The session then takes it as known to the client."""
        news = (
            bool(data.records)
            or data.error_code != ErrorCode.NONE
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0
        )
        # After an error the next answer includes the partition, even if nothing has changed.
        self.high_watermark = data.high_watermark if data.error_code == ErrorCode.NONE else -1
        self.log_start_offset = data.log_start_offset
        return news


class WantedTopic(NamedTuple):
    """Partitions of one topic in the order in which they are read, each of them once."""

    topic: str
    topic_id: UUID
    partitions: Sequence[Wanted]


def distinct(topics: Sequence[FetchTopic]) -> list[WantedTopic]:
    """The partitions of a request, each once: at its first place, with its last parameters, as in Kafka."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return [WantedTopic(topics[0].topic, topics[0].topic_id, topics[0].partitions)]
    merged: dict[tuple[str, UUID], dict[int, FetchPartition]] = {}
    for topic in topics:
        wanted = merged.setdefault((topic.topic, topic.topic_id), {})
        wanted.update((one.partition, one) for one in topic.partitions)
    return [WantedTopic(name, topic_id, list(wanted.values())) for (name, topic_id), wanted in merged.items()]


def _may_be_kept(topics: Sequence[WantedTopic]) -> bool:
    """Whether there are not too many, nor names that are longer than any topic's and would take memory for nothing."""
    return sum(len(topic.partitions) for topic in topics) <= MOST_OF_SESSION and all(
        len(topic.topic) <= MAX_NAME_LENGTH for topic in topics
    )


class FetchSession:
    """One client's. ``partitions`` are in the order in which they are read: those that gave records go last."""

    def __init__(
        self, id: int, owner: str, partitions: dict[Key, CachedPartition], now_ms: int, *, uses_topic_ids: bool
    ) -> None:
        self.id = id
        self.owner = owner
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.counted = 0
        """How many partitions the cache has counted."""
        self.is_evictable = False

    def update(self, topics: Iterable[WantedTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        for topic in topics:
            for wanted in topic.partitions:
                cached = self.partitions.get((topic.topic, topic.topic_id, wanted.partition))
                if cached is None:
                    cached = CachedPartition(topic, wanted)
                    self.partitions[cached.key] = cached
                else:
                    cached.update(wanted)
        for gone in forgotten:
            for index in gone.partitions:
                self.partitions.pop((gone.topic, gone.topic_id, index), None)


class FetchContext:
    """How one request is answered; this one has no session."""

    def __init__(self, topics: Sequence[WantedTopic]) -> None:
        self._topics = topics

    def topics(self) -> Sequence[WantedTopic]:
        """What is fetched, each partition once."""
        return self._topics

    def includes(self, topic: WantedTopic, wanted: Wanted, data: PartitionData) -> bool:
        """Whether this is part of the response."""
        return True

    def finish(self, response: FetchResponse, now_ms: int) -> FetchResponse:
        """The response, when it has everything."""
        return response

    def throttled(self, response: FetchResponse) -> None:
        """The client gets nothing of the response but the session, as it is throttled."""


class FullFetch(FetchContext):
    """Asks for a session."""

    def __init__(
        self, cache: FetchSessionCache, owner: str, topics: Sequence[WantedTopic], *, uses_topic_ids: bool
    ) -> None:
        super().__init__(topics)
        self._cache = cache
        self._owner = owner
        self._uses_topic_ids = uses_topic_ids
        self._partitions: dict[Key, CachedPartition] = {}

    def includes(self, topic: WantedTopic, wanted: Wanted, data: PartitionData) -> bool:
        cached = CachedPartition(topic, wanted)
        cached.includes(data)
        self._partitions[cached.key] = cached
        return True

    def finish(self, response: FetchResponse, now_ms: int) -> FetchResponse:
        response.session_id = self._cache.create(
            self._owner, self._partitions, now_ms, uses_topic_ids=self._uses_topic_ids
        )
        return response

    def throttled(self, response: FetchResponse) -> None:
        self._cache.remove(response.session_id)
        response.session_id = NO_SESSION


class IncrementalFetch(FetchContext):
    """A fetch of the partitions of a session."""

    def __init__(self, session: FetchSession) -> None:
        super().__init__(())
        self._session = session
        self._epoch = session.epoch
        self._included: list[CachedPartition] = []

    def topics(self) -> Sequence[WantedTopic]:
        topics: list[WantedTopic] = []
        partitions: list[Wanted] = []
        name, topic_id = "", None
        for cached in self._session.partitions.values():
            if topic_id is None or cached.topic != name or (cached.topic_id is not topic_id != cached.topic_id):
                partitions = []
                name, topic_id = cached.topic, cached.topic_id
                topics.append(WantedTopic(name, topic_id, partitions))
            partitions.append(cached)
        return topics

    def includes(self, topic: WantedTopic, wanted: Wanted, data: PartitionData) -> bool:
        assert isinstance(wanted, CachedPartition)
        session = self._session
        if session.epoch != self._epoch:
            return False
        if not wanted.includes(data):
            return False
        self._included.append(wanted)
        if data.records and session.partitions.pop(wanted.key, None) is not None:
            session.partitions[wanted.key] = wanted
        return True

    def finish(self, response: FetchResponse, now_ms: int) -> FetchResponse:
        if self._session.epoch != self._epoch:  # another request was quicker
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.id)
        response.session_id = self._session.id
        return response

    def throttled(self, response: FetchResponse) -> None:
        for cached in self._included:
            cached.high_watermark = -1


class FetchSessionCache:
    """The sessions of one node, at most ``slots``. ``new_id`` returns any number from 1 to 2³¹−1."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._last_used: dict[int, int] = {}
        """By id, in this order."""
        self._evictable: list[tuple[int, int]] = []
        """Sizes and ids of those that were older than ``EVICTION_MS`` when they were used last; sorted."""
        self._owned: dict[str, int] = {}
        self.partitions = 0
        """Of all sessions."""
        self.evictions = Sensor()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, owner: str, now_ms: int) -> FetchContext | ErrorCode:
        """How to answer a request of a connection, ``owner``; or what is wrong with its session."""
        uses_topic_ids = version >= _TOPIC_ID_VERSION
        topics = distinct(request.topics)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.remove(request.session_id)
            if request.session_epoch == FINAL_EPOCH or not _may_be_kept(topics):
                return FetchContext(topics)
            return FullFetch(self, owner, topics, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if not _may_be_kept(topics):
            self.remove(session.id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.update(topics, request.forgotten_topics_data)
        if not session.partitions:
            self.remove(session.id)
            return FetchContext(topics)
        self._touch(session, now_ms)
        if not self._fits(session, now_ms):
            self.remove(session.id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetch(session)

    def create(self, owner: str, partitions: dict[Key, CachedPartition], now_ms: int, *, uses_topic_ids: bool) -> int:
        """Opens a session with these partitions in place of the owner's; returns its id, or 0 if there is no room."""
        self.remove(self._owned.get(owner, NO_SESSION))
        size = len(partitions)
        while len(self._sessions) >= self._slots or self.partitions + size > MOST_OF_ALL:
            if not self._evict(size, now_ms):
                return NO_SESSION
        id = self._new_id()
        while id in self._sessions:
            id = self._new_id()
        session = FetchSession(id, owner, partitions, now_ms, uses_topic_ids=uses_topic_ids)
        self._sessions[id] = session
        self._owned[owner] = id
        self._touch(session, now_ms)
        return id

    def remove(self, id: int) -> None:
        """Ends a session, if there is one."""
        session = self._sessions.pop(id, None)
        if session is not None:
            del self._last_used[id]
            self._uncount(session)
            if self._owned.get(session.owner) == id:
                del self._owned[session.owner]

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        self._last_used.pop(session.id, None)
        self._last_used[session.id] = now_ms
        self._uncount(session)
        session.counted = len(session.partitions)
        self.partitions += session.counted
        session.is_evictable = now_ms - session.created_ms > EVICTION_MS
        if session.is_evictable:
            insort(self._evictable, (session.counted, session.id))

    def _uncount(self, session: FetchSession) -> None:
        self.partitions -= session.counted
        if session.is_evictable:
            del self._evictable[bisect_left(self._evictable, (session.counted, session.id))]

    def _fits(self, session: FetchSession, now_ms: int) -> bool:
        """Makes room for what a session has become."""
        while self.partitions > MOST_OF_ALL:
            if not self._evict(session.counted, now_ms):
                return False
        return session.counted <= MOST_OF_SESSION

    def _evict(self, size: int, now_ms: int) -> bool:
        """Ends a session for one with so many partitions: the one that was used longest ago, if that is long enough, or
        the smallest of the old ones, if it is smaller."""
        oldest = next(iter(self._last_used), None)
        if oldest is None:
            return False
        if now_ms - self._last_used[oldest] > EVICTION_MS:
            gone = oldest
        elif self._evictable and self._evictable[0][0] < size:
            gone = self._evictable[0][1]
        else:
            return False
        self.remove(gone)
        self.evictions.record(1, now_ms / 1000)
        return True
