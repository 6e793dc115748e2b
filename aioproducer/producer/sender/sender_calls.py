"""The interface of a Sender, as the producer's calls use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aioproducer.errors import KafkaError
from aioproducer.producer.diagnosis.explanation import Explanation
from aioproducer.types import PartitionInfo


class SenderCalls(Protocol):
    """The Sender, or what takes its place in a mock. Times are the loop's, in seconds."""

    fatal: KafkaError | None
    """Why this producer is unusable; None while it works."""

    def start(self) -> None: ...

    async def flush(self) -> None:
        """Returns when everything accepted so far has ended."""

    def abort_at_once(self, error: KafkaError) -> None:
        """Ends every record that has not ended, with ``error`` and its known outcome."""

    async def abort_in_turns(self, error: KafkaError) -> None:
        """Does what :meth:`abort_at_once` does in turns of the loop; if the caller is cancelled meanwhile, the rest at
        once."""

    async def stop(self, grace: float) -> None:
        """Ends the tasks and closes the connections; what acks=0 wrote gets ``grace`` seconds to leave the sockets."""

    def parked(self, topic: str) -> None:
        """A record waits in the parking lot."""

    def known_partitions(self, topic: str) -> Sequence[PartitionInfo]:
        """The topic's partitions; none while they are unknown."""

    async def partitions_for(self, topic: str, least: int = 1) -> list[PartitionInfo]:
        """The topic's partitions, waiting at most max.block.ms for at least this many."""

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why the head batch of this partition has not been sent."""

    def pending(self) -> int:
        """Batches that have not ended."""

    def requests_in_flight(self) -> int: ...

    def unanswered_since(self) -> float:
        """When the oldest request without an answer was sent; NaN if there is none."""

    def metadata_time(self) -> float:
        """When metadata last arrived; minus infinity before that."""

    def unreachable_since(self) -> float:
        """When the client found that no broker can be reached; NaN while one can be, or before the first attempt."""
