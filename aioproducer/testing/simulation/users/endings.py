"""The ends of producers without transactions, in each way that a scenario may choose."""

from __future__ import annotations

import asyncio
import math

from aioproducer.errors import KafkaError
from aioproducer.producer.delivery.wait_all import wait_all
from aioproducer.testing.simulation.scenario import NEVER_CREATED, Ending, stream
from aioproducer.testing.simulation.surroundings import Surroundings
from aioproducer.testing.simulation.users.producers import Producers


class Endings:
    """Ends all producers of a run."""

    def __init__(self, around: Surroundings, producers: Producers) -> None:
        self._around = around
        self._producers = producers
        self._random = stream(around.scenario.seed, "endings")

    async def early(self, number: int) -> None:
        """Ends a producer while records are under way, at the time and in the way of the scenario."""
        around, scenario, producer = self._around, self._around.scenario, self._producers[number]
        await asyncio.sleep(scenario.ends_at)
        began = around.loop.exact_time()
        around.trace("close", scenario.ending.value)
        match scenario.ending:
            case Ending.CLOSED:
                await asyncio.gather(producer.close(), producer.close())
                around.closed_in_time(began)
            case Ending.CLOSED_IN_TIME:
                await producer.close(scenario.close_timeout)
                around.closed_in_time(began, scenario.close_timeout)
            case Ending.ABORTED:
                await producer.close(0)
                around.closed_in_time(began, 0.0)
            case Ending.TORN_DOWN:
                for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
                    if task.get_name().startswith("aioproducer"):
                        task.cancel()
                await asyncio.sleep(0.01)
                self._producers.check_ended(number)
                await producer.close()
                around.closed_in_time(began, 0.01)
            case Ending.CANCELLED:
                closing = around.loop.create_task(producer.close(), name="closing")
                await asyncio.wait([closing], timeout=scenario.close_timeout)
                closing.cancel()
                await asyncio.wait([closing])
                around.closed_in_time(began, scenario.close_timeout)
            case Ending.AFTER_ALL:
                raise AssertionError(scenario.ending)
        self._producers.check_ended(number)

    async def after_all(self, number: int) -> None:
        """After all faults: the producer still works, and closes in order."""
        around, producer = self._around, self._producers[number]
        match self._random.randrange(3):
            case 0:
                await producer.flush()
            case 1:
                await wait_all(around.ledger.deliveries(number))
            case _:
                pass
        if not around.faults.fatal:
            await self._probe(number)
            await self._check_rest()
        began = around.loop.exact_time()
        await producer.close()
        around.closed_in_time(began)
        self._producers.check_ended(number)

    async def _probe(self, number: int) -> None:
        """Checks that every partition takes records again within the recovery time."""
        around = self._around
        # Batches that cannot cross a slow line block others until they expire.
        recovery = 5 * around.recovery if around.scenario.slow_lines else around.recovery
        for topic in around.cluster.topics:
            for partition in topic.partitions:
                deadline = around.loop.exact_time() + recovery
                while (failure := await self._try_once(number, topic.name, partition.index)) is not None:
                    if around.loop.exact_time() > deadline:
                        around.violations.add("the producer recovers", failure)
                        return
                    await asyncio.sleep(0.3)

    async def _try_once(self, number: int, topic: str, partition: int) -> str | None:
        """Sends a record; returns the failure if it is not delivered."""
        ledger = self._around.ledger
        entry = ledger.open(number, topic, {"partition": partition, "key": b"probe", "value": b"probe"})
        entry.as_it_is = "value_serializer" not in self._around.scenario.config
        try:
            delivery = await self._producers[number].enqueue(entry.record)
        except KafkaError as error:
            entry.error = error
        else:
            ledger.accepted(entry, delivery, parked=False, watched=True)
            await wait_all([delivery])
        return None if entry.metadata() is not None else f"{entry}: {entry.failure()}"

    async def _check_rest(self) -> None:
        """Checks that an idle producer does nothing but authenticate again, refresh metadata (for a missing topic after
        each back-off, as in Kafka), and connect if it reaches no broker."""
        around, scenario = self._around, self._around.scenario
        for number in range(len(self._producers)):
            await wait_all(around.ledger.deliveries(number))
        await asyncio.sleep(10)  # with acks=0 records may still be under way
        before = around.loop.steps
        await asyncio.sleep(5)
        wanting = any(plan.created_at == NEVER_CREATED for plan in scenario.topics)
        age = scenario.milliseconds("metadata_max_age_ms")
        rounds = 5 / (scenario.milliseconds("retry_backoff_ms") if wanting else age)
        if scenario.broker_configs.get("connections.max.idle.ms", math.inf) / 1000 < age:
            rounds *= 2  # each refresh has to connect anew
        session = scenario.broker_configs.get("connections.max.reauth.ms", 0) / 1000
        rounds += scenario.nodes * 5 / (0.85 * session) if session else 0
        producers = [self._producers[number] for number in range(len(self._producers))]
        if any(producer.metrics()["unreachable-age"] > 0 for producer in producers):
            rounds += 5 / (0.8 * scenario.milliseconds("reconnect_backoff_ms"))
        turns = around.loop.steps - before
        if turns > 200 + 50 * rounds * scenario.producers:
            around.violations.add("an idle producer rests", f"the loop has turned {turns} times in 5 s")
