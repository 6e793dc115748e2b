"""The worker process, which may be killed: it runs transactions and writes each step to a journal.

The journal is its standard output: bytes written to a pipe can be read in whatever way the writer ended. The worker
stops when its standard input ends.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import select
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import aioproducer
from aioproducer import KafkaProducer, wait_all
from aioproducer.delivery_log import DeliveryLog
from aioproducer.errors import KafkaError, ProducerFencedException
from aioproducer.testing.transactions.journal import Entry
from aioproducer.testing.transactions.plan import Plan, Step, Transaction

FENCED = 3
"""The exit status of a worker that was replaced by another."""


@dataclass(frozen=True)
class Work:
    bootstrap_servers: str
    topic: str
    transactional_id: str
    plan: Plan
    first: Transaction
    deliveries: str | None = None
    """The directory of the delivery logs of all workers."""

    def command(self) -> list[str]:
        """The command line. The worker imports the package from the same place as this process."""
        root = str(Path(aioproducer.__file__).parents[1])
        statement = f"import sys; sys.path.append({root!r}); from {__name__} import main; main(sys.argv[1])"
        return [sys.executable, "-P", "-c", statement, json.dumps(asdict(self))]


def main(argument: str) -> None:
    logging.basicConfig(format="%(asctime)s worker %(process)d: %(message)s", level=logging.WARNING)
    fields = json.loads(argument)
    work = Work(**{**fields, "plan": Plan(**fields["plan"]), "first": Transaction(*fields["first"])})
    sys.exit(asyncio.run(run(work)))


async def run(work: Work) -> int:
    transaction = work.first
    logs = [] if work.deliveries is None else [DeliveryLog(Path(work.deliveries, f"{work.first.run}.jsonl"))]
    producer = KafkaProducer(
        bootstrap_servers=work.bootstrap_servers,
        transactional_id=work.transactional_id,
        linger_ms=1,
        max_block_ms=120_000,
        interceptor_classes=logs,
    )
    try:
        async with producer:
            _write(Step.INITIALIZE, transaction)
            await producer.init_transactions()
            for number in itertools.count(work.first.number):
                if _should_stop():
                    return 0
                transaction = Transaction(work.first.run, number)
                await _transact(producer, work, transaction)
    except ProducerFencedException as fenced:
        _write(Step.FENCED, transaction, str(fenced))
        return FENCED
    raise AssertionError("numbers do not end")


async def _transact(producer: KafkaProducer, work: Work, transaction: Transaction) -> None:
    plan = work.plan
    _write(Step.BEGIN, transaction)
    await producer.begin_transaction()
    try:
        deliveries = [
            await producer.enqueue(work.topic, value, partition=partition)
            for partition, value in plan.values(transaction)
        ]
        if plan.waits(transaction.number):
            await wait_all(deliveries)
        if plan.commits(transaction.number):
            _write(Step.COMMIT, transaction)
            await producer.commit_transaction()
            _write(Step.COMMITTED, transaction)
            return
    except ProducerFencedException:
        raise
    except KafkaError as error:
        _write(Step.FAILED, transaction, repr(error))
    else:
        _write(Step.ABORT, transaction)
    await producer.abort_transaction()
    _write(Step.ABORTED, transaction)


def _write(step: Step, transaction: Transaction, detail: str = "") -> None:
    os.write(sys.stdout.fileno(), Entry(step, transaction, detail).line())


def _should_stop() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)
