"""Rules of metadata: when to ask, for which topics, and what an answer changes. ``now`` is a parameter.

Source: Kafka's ``Metadata`` and ``ProducerMetadata``. Answers that are older than what is known (by leader epoch,
KIP-320) do not undo it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import is_

from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.net.metadata.cluster import CHUNK, NO_TOPIC_ID, Cluster, Node, Partitions, TopicMetadata
from aioproducer.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.types import PartitionInfo

LAST_VERSION_WITHOUT_EPOCHS = 6
FIRST_VERSION_WITH_RELIABLE_EPOCHS = 9

LEADER_NOT_AVAILABLE = int(ErrorCode.LEADER_NOT_AVAILABLE)

FINAL_ERRORS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of a topic that last; all others may pass (Kafka's ``Metadata``)."""

_NONE = [None] * CHUNK

BELIEVED_AT_LAST = 3
"""After this many answers in a row with older leader epochs the client believes them, if brokers give no topic ids.

A broker that is behind catches up, but a topic that was deleted and created anew begins with epoch 0 again.
"""


class Metadata:
    """The snapshot in force, the topics wanted, and when the next request is due. Times in seconds."""

    def __init__(
        self,
        *,
        max_age: float,
        max_idle: float,
        backoff: ExponentialBackoff,
        rebootstrap_after: float | None = None,
        creates_topics: bool = True,
    ) -> None:
        self.cluster = Cluster()
        self.version = 0
        """Counts the answers applied."""
        self._max_age = max_age
        self._max_idle = max_idle
        self._backoff = backoff
        self._rebootstrap_after = rebootstrap_after
        self._fruitless = 0
        self._wait = backoff.initial
        self._creates_topics = creates_topics
        self._used: dict[str, float] = {}
        self._all_needed = True
        """Every topic's metadata is needed anew."""
        self._needed: set[str] = set()
        """The topics whose own is: they are new, missing or without a leader."""
        self._asked: set[str] | None = None
        """The topics of the last request; None if it was for all."""
        self._last_attempt = -math.inf
        self.updated_at = -math.inf
        """When the last answer about all topics arrived."""
        self._sought_since: float | None = None
        self._older: dict[str, int] = {}
        """Topics without ids of which the last answers had older leader epochs: how many in a row."""
        self._learnt_meanwhile: dict[tuple[str, int, int], int] | None = None
        """What ``learn_leaders`` got while an answer is being applied: the newest epoch of a topic, partition and
        leader. None at other times."""
        self._nodes_meanwhile: dict[int, Node] = {}
        """The brokers that it got."""
        self._other_topics: set[str] = set()
        """The answer that is being applied has another topic of this name."""
        self._replaced: list[TopicMetadata] = []
        """Metadata that was in force, to be let go of if it is no more."""
        self.failures: dict[str, tuple[ErrorCode, int]] = {}
        """Topics without metadata: the last error, and how often in a row it came."""

    def use_topic(self, topic: str, now: float) -> bool:
        """Marks the topic as wanted; True if it is new and metadata must be requested."""
        new = topic not in self._used
        self._used[topic] = now
        if new or topic not in self.cluster.topics:
            self._needed.add(topic)
        if new:
            self._last_attempt = -math.inf  # the back-off applies to repeated requests only
        return new

    def request_update(self, topic: str | None = None) -> None:
        """Marks the metadata as out of date: a topic's, or all."""
        if topic is None:
            self._all_needed = True
        else:
            self._needed.add(topic)

    def next_update(self) -> float:
        """When to ask next: at once if needed, but never before the back-off since the last request is over.

        The back-off grows for as long as requests fail or bring nothing new (KIP-580).
        """
        earliest = self._last_attempt + self._wait
        if self._all_needed or self._needed:
            return earliest
        return max(earliest, self.updated_at + self._max_age)

    def seek(self, now: float) -> float | None:
        """Starts an attempt; returns when to give up the known brokers and bootstrap anew, if ever (KIP-1102)."""
        if self._sought_since is None:
            self._sought_since = now
        if self._rebootstrap_after is None or not self.cluster.nodes:
            return None
        return self._sought_since + self._rebootstrap_after

    def rebootstrap(self) -> None:
        """Forgets the brokers but keeps the topics: the next answer updates those."""
        self.cluster = dataclasses.replace(self.cluster, nodes={})
        self._sought_since = None
        self._all_needed = True

    def requesting(self, now: float, in_use: Iterable[str] = ()) -> Generator[None, None, MetadataRequest]:
        """Makes the request for what is needed, with a pause after every few topics. Topics unused for
        metadata.max.idle.ms are forgotten, but not those ``in_use``.

        New, missing and leaderless topics are asked for without the others (Kafka's ``newMetadataRequestAndVersion``
        for new topics), unless all are due: with 100,000 partitions in use an answer about all has megabytes.
        """
        for number, topic in enumerate(in_use):
            if number % CHUNK == CHUNK - 1:
                yield
            self.use_topic(topic, now)
        for topic in [topic for topic, used in self._used.items() if now - used > self._max_idle]:
            del self._used[topic]
        yield
        self._last_attempt = now
        needed = self._needed & self._used.keys()
        of_all = self._all_needed or not needed or now >= self.updated_at + self._max_age
        self._asked = None if of_all else needed
        self._all_needed = False
        self._needed = set()
        yield
        names = list(self._used) if of_all else [topic for topic in self._used if topic in needed]
        topics: list[MetadataRequestTopic] = []
        for start in range(0, len(names), CHUNK):
            topics += [MetadataRequestTopic(name=name) for name in names[start : start + CHUNK]]
            yield
        return MetadataRequest(topics=topics, allow_auto_topic_creation=self._creates_topics)

    @staticmethod
    def version_for(newest: int) -> int | None:
        """The newest version to use with a broker that speaks ``newest``; None for that one.

        Leader epochs are reliable from version 9 on (KIP-320; Kafka's ``hasReliableLeaderEpochs``), and version 6
        has none.
        """
        return None if newest >= FIRST_VERSION_WITH_RELIABLE_EPOCHS else LAST_VERSION_WITHOUT_EPOCHS

    def failed(self, now: float) -> None:
        """The last request got no answer."""
        self._all_needed = True
        self._back_off(now, fruitless=True)

    def _back_off(self, now: float, *, fruitless: bool) -> None:
        if self._last_attempt > -math.inf:  # otherwise a topic wanted since then is requested at once
            # Counted from the end of the attempt: from its start the back-off might be over by now, and one request
            # after the other would leave no room on the connection for anything else.
            self._last_attempt = now
        self._fruitless = self._fruitless + 1 if fruitless else 0
        self._wait = self._backoff.wait(max(self._fruitless, 1))

    def updating(
        self, response: MetadataResponse, now: float, follow: Callable[[Cluster], Iterable[None]] = lambda _: ()
    ) -> Generator[None, None, None]:
        """Applies an answer, with a pause after every few partitions; all of it takes effect at the end, at once.

        ``follow(cluster)`` runs before that, in the same way. Its cluster is no snapshot yet: leaders learnt meanwhile
        are put into it afterwards.

        The answer is emptied on the way: freeing 100,000 partitions in one go would take as long as reading them. What
        it replaces is left to ``letting_go``.
        """
        old = self.cluster
        nodes = {
            broker.node_id: Node(broker.node_id, Address(broker.host, broker.port), broker.rack)
            for broker in response.brokers
        } or dict(old.nodes)
        topics: dict[str, TopicMetadata] = {}
        asked = self._asked
        errors = {}
        if asked is not None:
            known_still = old.errors.keys() - asked - self._needed
            errors = {name: old.errors[name] for name in known_still}
        self._learnt_meanwhile = {}
        self._nodes_meanwhile = {}
        self._other_topics = set()
        response.topics.reverse()
        while response.topics:
            yield
            answered = response.topics.pop()
            name = answered.name
            if name is None:
                continue
            code = ErrorCode(answered.error_code)
            if code is ErrorCode.NONE or (code is ErrorCode.LEADER_NOT_AVAILABLE and answered.partitions):
                known = topics.get(name) or (old.topics.get(name) if name in self._used else None)
                topics[name] = yield from self._topic(name, answered, known)
                self.failures.pop(name, None)
            else:
                errors[name] = code
                self.failures[name] = (code, self.failures.get(name, (code, 0))[1] + 1)
                if code not in FINAL_ERRORS:
                    self._needed.add(name)
                # A topic that is briefly missing keeps its partitions: its absence proves nothing.
        self._older = {name: count for name, count in self._older.items() if name in self._used}
        self.failures = {name: failure for name, failure in self.failures.items() if name in self._used}
        for number, (name, topic) in enumerate(old.topics.items()):
            if number % CHUNK == 0:
                yield
            self._replaced.append(topic)
            if name not in topics:
                if name in self._used:
                    topics[name] = topic
            elif _is_another(topics[name], topic):
                self._other_topics.add(name)
        cluster = Cluster(nodes, topics, errors, response.controller_id, response.cluster_id)
        yield
        fruitless = cluster == old
        yield
        yield from self._merging(nodes, topics)
        yield from follow(cluster)
        yield from self._merging(nodes, topics)
        if self.cluster is not old:  # topics with leaders learnt meanwhile are other objects
            self._replaced += [topic for topic in self.cluster.topics.values() if topic is not old.topics[topic.name]]
        self.cluster = cluster
        self._learnt_meanwhile = None
        self._other_topics = set()
        self._back_off(now, fruitless=fruitless)
        if asked is None:
            self.updated_at = now
        self._sought_since = None
        self.version += 1

    def _merging(self, nodes: dict[int, Node], topics: dict[str, TopicMetadata]) -> Generator[None, None, None]:
        """Puts the leaders learnt meanwhile among those of an answer, which may be older. At its end there are none
        left."""
        while self._learnt_meanwhile:
            learnt = [self._learnt_meanwhile.popitem() for _ in range(min(CHUNK, len(self._learnt_meanwhile)))]
            answers = [(*place, epoch) for place, epoch in learnt if place[0] not in self._other_topics]
            known = {**nodes, **self._nodes_meanwhile}
            if moved := _newer(answers, topics, known):
                nodes.update(known)
                topics.update(_with_leaders(topics, moved))
            yield

    def letting_go(self) -> Generator[None, None, None]:
        """Frees what answers have replaced, with a pause after every few partitions: 100,000 take 10 ms."""
        while self._replaced:
            yield
            topic = self._replaced.pop()
            if topic is not self.cluster.topics.get(topic.name):
                chunks = list(topic.partitions.chunks)
                del topic
                while chunks:
                    yield
                    chunks.pop()

    def _topic(
        self, name: str, answered: MetadataResponseTopic, known: TopicMetadata | None
    ) -> Generator[None, None, TopicMetadata]:
        topic_id = answered.topic_id
        if known is not None and topic_id == NO_TOPIC_ID:
            topic_id = known.topic_id  # a broker without topic ids proves nothing
        if known is not None and topic_id != known.topic_id and known.topic_id != NO_TOPIC_ID:
            known = None  # created anew: epochs start again
        before = Partitions() if known is None else known.partitions
        # A list, since a dict of 100,000 grows in one step of milliseconds. Partitions are numbered without gaps, so no
        # index is beyond its end.
        answers: list[MetadataResponsePartition | None] = []
        for _ in range(0, len(before) + len(answered.partitions), CHUNK):
            answers += _NONE
            yield
        size = 0
        while answered.partitions:
            partition = answered.partitions.pop()
            index = partition.partition_index
            size = max(size, index + 1)
            if 0 <= index < len(answers) and answers[index] is None:
                answers[index] = partition
            if len(answered.partitions) % CHUNK == 0:
                yield
        if answered.topic_id == NO_TOPIC_ID and (yield from self._believes_older(name, answers, before)):
            before = yield from _without_epochs(before)
        # Partitions are only ever added, so a missing one stays as it was. Only without topic ids may a smaller topic
        # be a new one.
        stay = len(before)
        if answered.topic_id == NO_TOPIC_ID and size < stay:
            stay, topic_id = size, NO_TOPIC_ID
        chunks: list[tuple[PartitionInfo, ...]] = []
        for start in range(0, len(answers), CHUNK):
            yield
            of_before = before.chunks[start // CHUNK] if start < len(before) else ()
            infos = self._chunk(name, answers[start : start + CHUNK], of_before, stay - start)
            answers[start : start + CHUNK] = _NONE
            if infos:
                chunks.append(of_before if _same(infos, of_before) else tuple(infos))
            if len(infos) < CHUNK:
                break
        if known is not None and topic_id == known.topic_id and _same(chunks, known.partitions.chunks):
            return known  # the same object, so that no caller looks for changes
        return TopicMetadata(name, topic_id, Partitions(tuple(chunks)))

    def _chunk(
        self,
        name: str,
        answers: Sequence[MetadataResponsePartition | None],
        before: Sequence[PartitionInfo],
        stay: int,
    ) -> list[PartitionInfo]:
        """The next partitions of a topic, up to the first that is neither in the answer nor one of ``stay`` that stay
        as they were."""
        infos: list[PartitionInfo] = []
        for index, answer in enumerate(answers):
            was = before[index] if index < len(before) else None
            if answer is not None:
                info = _partition(name, answer)
                if was is not None and (info == was or 0 <= info.leader_epoch < was.leader_epoch):
                    info = was
            elif index < stay and was is not None:
                info = was
            else:
                break
            if info.leader < 0:
                self._needed.add(name)
            infos.append(info)
        return infos

    def _believes_older(
        self, name: str, answers: Sequence[MetadataResponsePartition | None], before: Sequence[PartitionInfo]
    ) -> Generator[None, None, bool]:
        """Whether the answer for a topic without an id is older than what is known, and is believed all the same."""
        for info in before:
            if info.partition % CHUNK == 0:
                yield
            answer = answers[info.partition]
            if answer is not None and 0 <= answer.leader_epoch < info.leader_epoch:
                break
        else:
            self._older.pop(name, None)
            return False
        self._older[name] = self._older.get(name, 0) + 1
        if self._older[name] < BELIEVED_AT_LAST:
            self._needed.add(name)
            return False
        del self._older[name]
        return True

    def learn_leaders(self, answers: Iterable[tuple[str, int, int, int]], nodes: Iterable[Node]) -> list[PartitionInfo]:
        """Takes new leaders from a response (KIP-951), as (topic, partition, leader, epoch); returns those that were
        new.

        A leader without a known address is skipped. So is one of a topic that another is about to replace.
        """
        answers = [answer for answer in answers if answer[0] not in self._other_topics]
        by_id = {node.node_id: node for node in nodes}
        if self._learnt_meanwhile is not None:
            self._nodes_meanwhile |= by_id
            for topic, partition, leader, epoch in answers:
                place = topic, partition, leader
                self._learnt_meanwhile[place] = max(epoch, self._learnt_meanwhile.get(place, epoch))
        cluster = self.cluster
        known = {**cluster.nodes, **by_id}
        moved = _newer(answers, cluster.topics, known)
        if moved:
            topics = {**cluster.topics, **_with_leaders(cluster.topics, moved)}
            self.cluster = dataclasses.replace(cluster, nodes=known, topics=topics)
        return [info for infos in moved.values() for info in infos.values()]


def _newer(
    answers: Iterable[tuple[str, int, int, int]], topics: Mapping[str, TopicMetadata], nodes: Mapping[int, Node]
) -> dict[str, dict[int, PartitionInfo]]:
    """By topic and partition, the leaders that are newer than those known."""
    newer: dict[str, dict[int, PartitionInfo]] = {}
    for topic, partition, leader, epoch in answers:
        known = topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions) or leader not in nodes:
            continue
        info = newer.get(topic, {}).get(partition) or known.partitions[partition]
        if epoch > info.leader_epoch:
            newer.setdefault(topic, {})[partition] = info._replace(leader=leader, leader_epoch=epoch)
    return newer


def _with_leaders(
    topics: Mapping[str, TopicMetadata], moved: Mapping[str, Mapping[int, PartitionInfo]]
) -> dict[str, TopicMetadata]:
    """The topics in which these have moved."""
    return {
        name: dataclasses.replace(topics[name], partitions=topics[name].partitions.with_changes(infos.values()))
        for name, infos in moved.items()
    }


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether both hold the very same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _is_another(topic: TopicMetadata, known: TopicMetadata) -> bool:
    """Whether a topic with the name of a known one is not the same: its id differs, or it has fewer partitions."""
    proven = NO_TOPIC_ID not in (topic.topic_id, known.topic_id) and topic.topic_id != known.topic_id
    return proven or len(topic.partitions) < len(known.partitions)


def _without_epochs(partitions: Partitions) -> Generator[None, None, Partitions]:
    chunks: list[tuple[PartitionInfo, ...]] = []
    for chunk in partitions.chunks:
        chunks.append(tuple([info._replace(leader_epoch=-1) for info in chunk]))
        yield
    return Partitions(tuple(chunks))


def _partition(topic: str, answered: MetadataResponsePartition) -> PartitionInfo:
    # Runs for every partition: converting each code to an enum would take a third of the time.
    return PartitionInfo(
        topic,
        answered.partition_index,
        -1 if answered.error_code == LEADER_NOT_AVAILABLE else answered.leader_id,
        answered.leader_epoch,
        tuple(answered.replica_nodes),
        tuple(answered.isr_nodes),
        tuple(answered.offline_replicas),
    )
