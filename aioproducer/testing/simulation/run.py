"""One seed, from its scenario to its report."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aioproducer.testing.simulation.checks.invariants import check
from aioproducer.testing.simulation.checks.transaction_invariants import check_all_ended, check_transactions
from aioproducer.testing.simulation.checks.transactions import End
from aioproducer.testing.simulation.checks.unit_invariants import check_units
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults.chaos import Chaos
from aioproducer.testing.simulation.faults.faults import KINDS
from aioproducer.testing.simulation.leftovers import check_nothing_left
from aioproducer.testing.simulation.log_watch import watched_log
from aioproducer.testing.simulation.loop import Stuck
from aioproducer.testing.simulation.report import Report
from aioproducer.testing.simulation.scenario import Ending, Scenario, stream
from aioproducer.testing.simulation.stacks import waiting_tasks
from aioproducer.testing.simulation.surroundings import Surroundings
from aioproducer.testing.simulation.users.application import CONSUMED, ENOUGH_MS, INPUT, Application
from aioproducer.testing.simulation.users.endings import Endings
from aioproducer.testing.simulation.users.producers import Producers
from aioproducer.testing.simulation.users.workload import Work


def simulate(
    seed: int,
    *,
    kinds: Collection[str] = tuple(KINDS),
    rates: Mapping[str, float] | None = None,
    ample: bool = False,
    keep_trace: bool = False,
) -> Report:
    """Runs a seed with these kinds of faults, without waiting in real time; see :func:`draw`."""
    return play(draw(seed, kinds, rates=rates, ample=ample), keep_trace=keep_trace)


def play(scenario: Scenario, *, keep_trace: bool = False) -> Report:
    """Runs a scenario."""
    with _garbage_of_its_own():
        return _Run(Surroundings.of(scenario, keep_trace=keep_trace)).report()


@contextmanager
def _garbage_of_its_own() -> Iterator[None]:
    """Collects garbage only when the run asks for it, because automatic collections would differ from run to run.
    Objects from before the run are left alone."""
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


class _Run:
    """A cluster, producers and their users on their own loop; see :func:`play`."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        scenario = around.scenario
        self._chaos = Chaos(scenario, around.cluster, around.faults, around.trace, stream(scenario.seed, "chaos"))
        self._acknowledged = 0
        self._began = around.loop.now
        around.loop.set_exception_handler(self._unhandled)

    def report(self) -> Report:
        around = self._around
        with watched_log(around.trace, around.violations):
            self._run()
        transactions = around.transactions.transactions
        return Report(
            around.scenario,
            around.violations.found,
            around.trace.digest(),
            around.trace.lines,
            len(around.ledger.entries),
            self._acknowledged,
            len(transactions),
            sum(transaction.end is End.COMMITTED for transaction in transactions),
            around.loop.now - self._began,
            around.loop.steps,
        )

    def _run(self) -> None:
        around, loop = self._around, self._around.loop
        loop.at(self._began + self._longest(), self._takes_too_long)
        main = loop.create_task(self._main(), name="main")
        try:
            loop.run_until_complete(main)
            topics = [*around.cluster.topics, *(topic for _, topic in self._chaos.deleted)]
            check(around.scenario, around.ledger, topics, self._chaos.vanished, around.violations)
            deleted = [topic for _, topic in self._chaos.deleted]
            check_transactions(
                around.scenario, around.ledger, around.transactions, around.cluster, deleted, around.violations
            )
            check_units(around.scenario, around.ledger, around.transactions, around.cluster, deleted, around.violations)
            self._acknowledged = sum(entry.acknowledged() for entry in around.ledger.entries)
        except Stuck as stuck:
            around.violations.add(str(stuck), "".join(f"\n  {line}" for line in waiting_tasks(loop)))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            around.violations.add("a run raises no unexpected error", "".join(traceback.format_exception(error)))
        finally:
            self._clear_up()

    def _longest(self) -> float:
        """Seconds within which a run ends, even if each record waits for the one before."""
        scenario = self._around.scenario
        longest = sum(map(scenario.milliseconds, ("max_block_ms", "delivery_timeout_ms")))
        records = [work.records for work in scenario.work]
        records += [one.lives * one.transactions * (one.work.records + 10) for one in scenario.applications]
        return 10 * (scenario.faults_until + longest) + max(records) * longest + 100

    def _takes_too_long(self) -> None:
        raise Stuck("a wait never ends")

    def _clear_up(self) -> None:
        """Cleans up, so that no run, failed or not, affects the next one."""
        loop = self._around.loop
        left = asyncio.all_tasks(loop)
        loop.set_exception_handler(lambda loop, context: None)
        loop.max_steps = loop.steps + 10_000
        while left and loop.steps < loop.max_steps:
            for task in left:
                task.cancel()
            loop.call_later(1, loop.stop)
            loop.run_forever()
            left = asyncio.all_tasks(loop)
        self._around.ledger.let_go()
        gc.collect()
        loop.close()

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        details = "".join(traceback.format_exception(error)) if error is not None else ""
        self._around.violations.add("no exception is lost", f"{context['message']}\n{details}")

    # On the loop

    async def _main(self) -> None:
        around = self._around
        async with around.cluster:
            producers = Producers(around)
            for plan in around.scenario.topics:
                if plan.created_at == 0:
                    self._chaos.create(plan)
            await (self._applications(producers) if around.scenario.applications else self._tasks(producers))
            producers.check_interceptors()
            check_nothing_left(around)
            await asyncio.sleep(10)  # bytes under way to the brokers arrive

    async def _tasks(self, producers: Producers) -> None:
        """Runs the users that send, and ends each producer."""
        scenario, loop = self._around.scenario, self._around.loop
        for _ in range(scenario.producers):
            number = await producers.start()
            if scenario.wraps:
                await producers.near_the_end_of_sequences(number)
        endings = Endings(self._around, producers)
        tasks = [loop.create_task(self._chaos.run(), name="chaos")]
        tasks += [
            loop.create_task(self._work(number, producers), name=f"work {number}")
            for number in range(len(scenario.work))
        ]
        early = scenario.ending is not Ending.AFTER_ALL
        if early:
            tasks += [
                loop.create_task(endings.early(number), name=f"close {number}") for number in range(len(producers))
            ]
        await asyncio.gather(*tasks)
        for number in range(len(producers)):
            if not early:
                await endings.after_all(number)
            producers.check_metrics(number)

    async def _work(self, number: int, producers: Producers) -> None:
        around, scenario = self._around, self._around.scenario
        plan, random = scenario.work[number], stream(scenario.seed, f"work {number}")
        producer = producers[plan.producer]
        await Work(scenario, plan, producer, around.ledger, around.violations, around.loop, random).run()

    async def _applications(self, producers: Producers) -> None:
        """Runs the applications that work in transactions."""
        around, scenario, loop = self._around, self._around.scenario, self._around.loop
        for topic in (INPUT, CONSUMED):
            self._chaos.create(topic)
        applications = [
            Application(plan, around, producers, stream(scenario.seed, f"application {number}"))
            for number, plan in enumerate(scenario.applications)
        ]
        tasks = [
            loop.create_task(application.run(), name=f"application {number}")
            for number, application in enumerate(applications)
        ]
        await asyncio.gather(loop.create_task(self._chaos.run(), name="chaos"), *tasks)
        if stream(scenario.seed, "probe").random() < 0.7:
            for application in applications:
                await application.probe()
        # A late request may still begin a transaction.
        longest = max(ENOUGH_MS, *(plan.timeout_ms for plan in scenario.applications)) / 1000
        await asyncio.sleep(1 + longest + scenario.milliseconds("request_timeout_ms"))
        check_all_ended(around.cluster, around.violations)
