"""The producers of a run: how each begins, and what must be true of a closed one."""

from __future__ import annotations

import contextlib
from typing import Any

from aioproducer.errors import KafkaError
from aioproducer.producer.producer import KafkaProducer, core_of
from aioproducer.testing.simulation.checks.invariants import check_counts
from aioproducer.testing.simulation.scenario import stream
from aioproducer.testing.simulation.surroundings import Surroundings
from aioproducer.testing.simulation.users.interceptor import CountingInterceptor


class Producers:
    """The producers by number, in the order of their creation; they are created when the cluster runs."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._bootstrap_servers = around.cluster.bootstrap_servers
        self._producers: list[KafkaProducer] = []
        self._interceptors: list[CountingInterceptor] = []

    def __len__(self) -> int:
        return len(self._producers)

    def __getitem__(self, number: int) -> KafkaProducer:
        return self._producers[number]

    async def start(self, **more: Any) -> int:
        """Creates a producer with the scenario's config and ``more``; returns its number."""
        around, scenario = self._around, self._around.scenario
        number = len(self._producers)
        # The default id counts all producers of the process, so the bytes of a replay would differ.
        config = {"client_id": f"producer-{number}", **scenario.config, **more}
        config["bootstrap_servers"] = self._bootstrap_servers
        if scenario.intercepts:
            self._interceptors.append(CountingInterceptor(number, stream(scenario.seed, f"interceptor {number}")))
            config["interceptor_classes"] = self._interceptors[-1:]
        producer = KafkaProducer(**config)
        producer._clock = around.clock
        producer._random = stream(scenario.seed, f"producer {number}")
        self._producers.append(producer)
        await producer.start()
        return number

    async def near_the_end_of_sequences(self, number: int) -> None:
        """Sets the sequences of a new producer so that they soon start again from 0."""
        producer, random = self._producers[number], stream(self._around.scenario.seed, f"sequences {number}")
        for plan in self._around.scenario.topics:
            with contextlib.suppress(KafkaError):
                await producer.partitions_for(plan.name)
        for topic in core_of(producer).accumulator.topics.values():
            for queue in topic.queues:
                if queue.sequences is not None:
                    queue.sequences.next_sequence = (1 << 31) - 1 - random.randrange(50)

    def check_ended(self, number: int) -> None:
        """Checks a closed producer: every record has ended."""
        pending = self._around.ledger.pending(number)
        if pending:
            self._around.violations.add("close leaves no record pending", pending)

    def check_metrics(self, number: int) -> None:
        """Checks a closed producer: it holds no memory, and its counts are those of the records."""
        violations = self._around.violations
        metrics = self._producers[number].metrics()
        held = metrics["buffer-total-bytes"] - metrics["buffer-available-bytes"]
        if held or metrics["parked-bytes"]:
            violations.add(
                "all memory comes back", f"producer {number} holds {held}, and {metrics['parked-bytes']} parked"
            )
        for name in ("parked-records", "waiting-threads", "requests-in-flight", "units-waiting"):
            if metrics[name]:
                violations.add("metrics count every record", f"{name} of producer {number} is {metrics[name]}")
        check_counts(self._around.ledger, number, metrics, violations)

    def check_interceptors(self) -> None:
        """Checks the interceptors after all producers are closed."""
        for interceptor in self._interceptors:
            interceptor.check(self._around.ledger, self._around.violations)
