"""One seed, from its scenario to what was found."""

from __future__ import annotations

import asyncio
import gc
import logging
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import KafkaError
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.wait_all import wait_all
from aioproducer.protocol.api_keys import ApiKey
from aioproducer.testing.simulation.application import ENOUGH_MS, INPUT, Application, Surroundings
from aioproducer.testing.simulation.chaos import Chaos
from aioproducer.testing.simulation.faults import KINDS, SimulatedFaults
from aioproducer.testing.simulation.interceptor import CountingInterceptor
from aioproducer.testing.simulation.invariants import BatchWatch, WireWatch, check, check_counts, check_end
from aioproducer.testing.simulation.ledger import Ledger
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop, Stuck
from aioproducer.testing.simulation.network import Network
from aioproducer.testing.simulation.scenario import NEVER, Ending, Scenario, draw, stream
from aioproducer.testing.simulation.stacks import who_waits
from aioproducer.testing.simulation.trace import Trace
from aioproducer.testing.simulation.transaction_invariants import check_all_ended, check_transactions
from aioproducer.testing.simulation.transactions import End, TransactionLedger
from aioproducer.testing.simulation.violations import Violations
from aioproducer.testing.simulation.workload import CallbackRaised, Work

HOST = "kafka"


@dataclass(slots=True)
class Report:
    """What came of a seed."""

    scenario: Scenario
    violations: list[str]
    digest: str
    """Of the trace: equal for equal runs."""
    trace: list[str] = field(repr=False)
    records: int
    acknowledged: int
    transactions: int
    committed: int
    virtual_seconds: float
    steps: int

    @property
    def ok(self) -> bool:
        return not self.violations


def simulate(seed: int, *, kinds: Collection[str] = tuple(KINDS), keep_trace: bool = False) -> Report:
    """Runs a seed with these kinds of faults, in no real time to speak of."""
    return play(draw(seed, kinds), keep_trace=keep_trace)


def play(scenario: Scenario, *, keep_trace: bool = False) -> Report:
    """Runs a scenario."""
    with _garbage_of_its_own():
        return Simulation(scenario, keep_trace=keep_trace).run()


@contextmanager
def _garbage_of_its_own() -> Iterator[None]:
    """Garbage is collected when the run wants it, since what is collected when would differ from run to run; and what
    was there before the run is not looked at."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if collecting:
            gc.enable()


class Simulation:
    """A cluster, producers and their users on a loop of their own; see :func:`play`."""

    def __init__(self, scenario: Scenario, *, keep_trace: bool = False) -> None:
        seed = scenario.seed
        self.scenario = scenario
        self.trace = Trace(keep=keep_trace)
        stalls = scenario.rates.get("stalls", 0.0) / 10
        self.violations = Violations(self.trace, slack=1.0 if stalls else 0.05)
        self.faults = SimulatedFaults(
            stream(seed, "faults"), scenario.rates, scenario.milliseconds("request_timeout_ms"), self.trace
        )
        if scenario.transaction_version < 2:
            # With the first protocol what is late may get into the next transaction: that is why there is a second.
            self.faults.never_late = frozenset({ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT})
        self.faults.on_batch = BatchWatch(self.violations)
        self.network = Network(stream(seed, "network"), scenario.conditions, self.faults, self.trace)
        self.network.watch = WireWatch(scenario, self.violations)
        self.loop = SimulatedLoop(
            stream(seed, "loop"), self.network, stalls=stalls, collects=scenario.collects, coarse=scenario.coarse
        )
        began = self._began = self.loop.now
        self.trace.clock = lambda: self.loop.now - began
        self.loop.set_exception_handler(self._unhandled)
        self.clock = SimulatedClock(self.loop, self.faults.clock_jump)
        self.cluster = EmbeddedCluster(
            scenario.nodes,
            host=HOST,
            racks=scenario.racks,
            configs={**scenario.broker_configs, "default.replication.factor": scenario.replication},
            clock=self.clock,
            newest_versions=scenario.newest_versions,
            old_nodes=scenario.old_nodes,
            transaction_version=scenario.transaction_version,
            random=stream(seed, "cluster"),
            faults=self.faults,
            listen=listen_on_network,
        )
        self.chaos = Chaos(scenario, self.cluster, self.faults, self.trace, stream(seed, "chaos"))
        self.ledger = Ledger(self.loop.exact_time, self.trace)
        self.transactions = TransactionLedger(self.trace)
        if "recreate" not in scenario.rates:
            self.ledger.on_end = lambda entry: check_end(entry, self.cluster, self.violations)
        self.producers: list[KafkaProducer] = []
        self.interceptors: list[CountingInterceptor] = []
        self.acknowledged = 0
        self._bootstrap_servers = ""
        self._random = stream(seed, "run")

    def run(self) -> Report:
        with self._logs():
            self._run()
        return Report(
            self.scenario,
            self.violations.found,
            self.trace.digest(),
            self.trace.lines,
            len(self.ledger.entries),
            self.acknowledged,
            len(self.transactions.transactions),
            sum(transaction.end is End.COMMITTED for transaction in self.transactions.transactions),
            self.loop.now - self._began,
            self.loop.steps,
        )

    def _run(self) -> None:
        loop = self.loop
        longest = sum(self.scenario.milliseconds(name) for name in ("max_block_ms", "delivery_timeout_ms"))
        plans = [(work.records, work) for work in self.scenario.work]
        plans += [
            (one.lives * one.transactions * (one.work.records + 10), one.work) for one in self.scenario.applications
        ]
        one_by_one = max(records for records, _ in plans) * longest
        loop.at(self._began + 10 * (self.scenario.faults_until + longest) + one_by_one + 100, self._takes_too_long)
        main = loop.create_task(self._main(), name="main")
        try:
            loop.run_until_complete(main)
            topics = [*self.cluster.topics, *(topic for _, topic in self.chaos.deleted)]
            check(self.scenario, self.ledger, topics, self.violations)
            check_transactions(self.scenario, self.ledger, self.transactions, self.cluster, self.violations)
            self.acknowledged = sum(entry.acknowledged() for entry in self.ledger.entries)
        except Stuck as stuck:
            self.violations.add(str(stuck), "".join(f"\n  {line}" for line in who_waits(loop)))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.violations.add("nothing unforeseen happens", "".join(traceback.format_exception(error)))
        finally:
            self._clear_up()

    def _takes_too_long(self) -> None:
        raise Stuck("something is waited for that does not come")

    def _clear_up(self) -> None:
        """Nothing of a run, failed or not, may show up in the next one."""
        loop = self.loop
        left = asyncio.all_tasks(loop)
        loop.set_exception_handler(lambda loop, context: None)
        loop.max_steps = loop.steps + 10_000
        while left and loop.steps < loop.max_steps:
            for task in left:
                task.cancel()
            loop.call_later(1, loop.stop)
            loop.run_forever()
            left = asyncio.all_tasks(loop)
        self.ledger.let_go()
        gc.collect()
        loop.close()

    # The run itself

    async def _main(self) -> None:
        scenario = self.scenario
        async with self.cluster:
            self._bootstrap_servers = self.cluster.bootstrap_servers
            for plan in scenario.topics:
                if plan.created_at == 0:
                    self.chaos.create(plan)
            await (self._run_applications() if scenario.applications else self._run_producers())
            for interceptor in self.interceptors:
                interceptor.check(self.ledger, self.violations)
            self._check_nothing_left()
            await asyncio.sleep(10)  # what is still on its way to the brokers arrives

    async def _run_producers(self) -> None:
        scenario = self.scenario
        for _ in range(scenario.producers):
            await self._start_producer({})
        others = [self.loop.create_task(self.chaos.run(), name="chaos")]
        others += [
            self.loop.create_task(self._work(number), name=f"work {number}") for number in range(len(scenario.work))
        ]
        if scenario.ending is not Ending.AFTER_ALL:
            others += [
                self.loop.create_task(self._close_early(producer), name=f"close {number}")
                for number, producer in enumerate(self.producers)
            ]
        await asyncio.gather(*others)
        for number, producer in enumerate(self.producers):
            if scenario.ending is Ending.AFTER_ALL:
                await self._finish(number, producer)
            self._check_metrics(number, producer)

    async def _run_applications(self) -> None:
        scenario = self.scenario
        self.chaos.create(INPUT)
        around = Surroundings(
            scenario,
            self.cluster,
            self.faults,
            self.loop,
            self.ledger,
            self.transactions,
            self.violations,
            start=self._start_producer,
            closed=self._check_closed,
        )
        applications = [
            Application(plan, around, stream(scenario.seed, f"application {number}"))
            for number, plan in enumerate(scenario.applications)
        ]
        tasks = [
            self.loop.create_task(application.run(), name=f"application {number}")
            for number, application in enumerate(applications)
        ]
        await asyncio.gather(self.loop.create_task(self.chaos.run(), name="chaos"), *tasks)
        if self._random.random() < 0.7:
            for application in applications:
                await application.probe()
        await asyncio.sleep(1 + max(ENOUGH_MS, *(plan.timeout_ms for plan in scenario.applications)) / 1000)
        check_all_ended(self.cluster, self.violations)

    def _check_closed(self, number: int) -> None:
        self._check_all_ended(number)
        self._check_metrics(number, self.producers[number])

    async def _start_producer(self, more: dict[str, Any]) -> tuple[int, KafkaProducer]:
        number = len(self.producers)
        config = {**self.scenario.config, **more, "bootstrap_servers": self._bootstrap_servers}
        if self.scenario.intercepts:
            self.interceptors.append(CountingInterceptor(number, stream(self.scenario.seed, f"interceptor {number}")))
            config["interceptor_classes"] = self.interceptors[-1:]
        producer = KafkaProducer(**config)
        producer._clock = self.clock
        producer._random = stream(self.scenario.seed, f"producer {number}")
        self.producers.append(producer)
        await producer.start()
        return number, producer

    async def _work(self, number: int) -> None:
        plan = self.scenario.work[number]
        random = stream(self.scenario.seed, f"work {number}")
        producer = self.producers[plan.producer]
        await Work(self.scenario, plan, producer, self.ledger, self.violations, self.loop, random).run()

    # Endings

    async def _close_early(self, producer: KafkaProducer) -> None:
        scenario = self.scenario
        await asyncio.sleep(scenario.ends_at)
        began = self.loop.exact_time()
        self.trace("close", scenario.ending.value)
        match scenario.ending:
            case Ending.CLOSED:
                await asyncio.gather(producer.close(), producer.close())
                self._in_time("close", began)
            case Ending.CLOSED_IN_TIME:
                await producer.close(scenario.close_timeout)
                self.violations.in_time("close", began, self.loop.exact_time(), scenario.close_timeout)
            case Ending.ABORTED:
                await producer.close(0)
                self.violations.in_time("close", began, self.loop.exact_time(), 0.0)
            case Ending.TORN_DOWN:
                for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
                    if task.get_name().startswith("aioproducer"):
                        task.cancel()
                await asyncio.sleep(0.01)
                self._check_all_ended(self.producers.index(producer))
                await producer.close()
                self.violations.in_time("close", began, self.loop.exact_time(), 0.01)
            case Ending.CANCELLED:
                closing = self.loop.create_task(producer.close(), name="closing")
                await asyncio.wait([closing], timeout=scenario.close_timeout)
                closing.cancel()
                await asyncio.wait([closing])
                self.violations.in_time("close", began, self.loop.exact_time(), scenario.close_timeout)
            case Ending.AFTER_ALL:
                raise AssertionError(scenario.ending)
        self._check_all_ended(self.producers.index(producer))

    async def _finish(self, number: int, producer: KafkaProducer) -> None:
        """All is well again: the producer still works, and ends in good order."""
        began = self.loop.exact_time()
        match self._random.randrange(3):
            case 0:
                await producer.flush()
            case 1:
                await wait_all(self.ledger.deliveries(number))
            case _:
                pass
        if not self.faults.fatal:
            await self._probe(number, producer)
            await self._check_rest()
        began = self.loop.exact_time()
        await producer.close()
        self._in_time("close", began)
        self._check_all_ended(number)

    async def _probe(self, number: int, producer: KafkaProducer) -> None:
        """Every partition takes records again, sooner or later: back-offs may have become long."""
        for topic in self.cluster.topics:
            for partition in topic.partitions:
                longest = self.scenario.milliseconds("socket_connection_setup_timeout_max_ms")
                deadline = self.loop.exact_time() + 30 + 3 * longest
                while True:
                    entry = self.ledger.open(number, topic.name, {"partition": partition.index, "value": b"probe"})
                    try:
                        delivery = await producer.enqueue(entry.record)
                    except KafkaError as error:
                        entry.error = error
                    else:
                        self.ledger.accepted(entry, delivery, parked=False, watched=True)
                        await wait_all([delivery])
                    if entry.metadata() is not None:
                        break
                    if self.loop.exact_time() > deadline:
                        self.violations.add("the producer recovers", f"{entry}: {entry.failure()}")
                        return
                    await asyncio.sleep(0.3)

    # Checks while the loop runs

    async def _check_rest(self) -> None:
        """With nothing to do, nothing is done but to authenticate again in time, and to ask for metadata now and then,
        or, as Kafka's producer does, after each back-off if a topic is wanted that there is not."""
        for number in range(len(self.producers)):
            await wait_all(self.ledger.deliveries(number))
        await asyncio.sleep(10)  # with acks=0 much may still be on its way
        before = self.loop.steps
        await asyncio.sleep(5)
        wanting = any(plan.created_at == NEVER for plan in self.scenario.topics)
        rounds = 5 / self.scenario.milliseconds("retry_backoff_ms" if wanting else "metadata_max_age_ms")
        session = self.scenario.broker_configs.get("connections.max.reauth.ms", 0) / 1000
        rounds += self.scenario.nodes * 5 / (0.85 * session) if session else 0
        if self.loop.steps - before > 200 + 50 * rounds * self.scenario.producers:
            self.violations.add(
                "an idle producer rests", f"the loop has turned {self.loop.steps - before} times in 5 s"
            )

    def _in_time(self, what: str, began: float) -> None:
        names = ("max_block_ms", "delivery_timeout_ms", "request_timeout_ms")
        self.violations.in_time(what, began, self.loop.exact_time(), sum(map(self.scenario.milliseconds, names)))

    def _check_all_ended(self, number: int) -> None:
        pending = self.ledger.pending(number)
        if pending:
            self.violations.add("close leaves no record pending", pending)

    def _check_metrics(self, number: int, producer: KafkaProducer) -> None:
        metrics = producer.metrics()
        held = metrics["buffer-total-bytes"] - metrics["buffer-available-bytes"]
        if held or metrics["parked-bytes"]:
            self.violations.add(
                "all memory comes back", f"producer {number} holds {held}, and {metrics['parked-bytes']} parked"
            )
        for name in ("parked-records", "waiting-threads", "requests-in-flight"):
            if metrics[name]:
                self.violations.add("metrics tell the truth", f"{name} of producer {number} is {metrics[name]}")
        check_counts(self.ledger, number, metrics, self.violations)

    def _check_nothing_left(self) -> None:
        names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        tasks = [name for name in names if not name.startswith("data-plane-kafka-")]  # the brokers' are still there
        if tasks:
            self.violations.add("no task is left", sorted(tasks))
        ends = [end.name for end in self.network.open if end.is_client and end.transport is not None]
        if ends:
            self.violations.add("no connection is left", ends)
        callbacks: list[Any] = [getattr(timer, "_callback") for timer in self.loop.timers()]  # noqa: B009
        timers = [
            f"{callback.__module__}.{callback.__qualname__}"
            for callback in callbacks
            if not getattr(callback, "__module__", "").startswith("aioproducer.broker")
        ]
        if timers:
            self.violations.add("no timer is left", sorted(timers))

    # What goes by the loop and by the log

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        told = "".join(traceback.format_exception(error)) if error is not None else ""
        self.violations.add("no exception is lost", f"{context['message']}\n{told}")

    @contextmanager
    def _logs(self) -> Iterator[None]:
        logger = logging.getLogger("aioproducer")
        handler = _LogWatch(self.trace, self.violations)
        before = (logger.propagate, logger.level)
        logger.propagate = False
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate, _ = before
            logger.setLevel(before[1])


class _LogWatch(logging.Handler):
    """An exception that is only logged is a violation, too."""

    def __init__(self, trace: Trace, violations: Violations) -> None:
        super().__init__()
        self._trace = trace
        self._violations = violations

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._trace("log", record.name, message)
        if record.exc_info and not isinstance(record.exc_info[1], CallbackRaised):
            told = "".join(traceback.format_exception(record.exc_info[1]))
            self._violations.add("no exception is lost", f"{message}\n{told}")
