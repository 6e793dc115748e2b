"""A campaign: workers and bounces on a cluster of real Kafka, then the reader, then one or two judges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.transactions.audit import audit_campaign, deliveries
from aioproducer.testing.transactions.bounces import bounce_brokers
from aioproducer.testing.transactions.journal import Journal
from aioproducer.testing.transactions.judge import judge
from aioproducer.testing.transactions.plan import Plan, Transaction
from aioproducer.testing.transactions.report import Report
from aioproducer.testing.transactions.worker import Work
from aioproducer.testing.transactions.workers import CampaignFailed, Workers

_QUIET_MS = 10_000
"""The reader has read everything when no record has come for this time."""


async def run(
    kafka: ApacheKafka,
    plan: Plan,
    show: Callable[[str], object],
    *,
    name: str = "campaign",
    audit: Path | None = None,
) -> Report:
    """``name`` is the transactional id, and the name of the topic, which is created here. To bounce nodes, the cluster
    must have at least three. ``audit`` is a directory for the delivery audit, which then judges as well.

    Raises ``CampaignFailed`` if a worker ends unexpectedly, or is not fenced after it was replaced. The notes of the
    error contain the brokers' log lines about transactions.
    """
    replicas = min(3, len(kafka.node_ids))
    configs = {"min.insync.replicas": str(min(2, replicas))}
    await kafka.tools.create_topic(name, partitions=plan.partitions, replication_factor=replicas, configs=configs)
    journal = Journal()
    work = Work(kafka.bootstrap_servers, name, name, plan, Transaction(0, 0))
    if audit is not None:
        deliveries(audit).mkdir(parents=True)
        work = replace(work, deliveries=str(deliveries(audit).absolute()))
    began = time.monotonic()
    bouncing = asyncio.create_task(bounce_brokers(kafka, name, name, plan, show))
    workers = Workers(work, journal, bounced=bouncing.done, show=show)
    try:
        await workers.run()
    except CampaignFailed as failed:
        for node_id in kafka.node_ids:
            failed.add_note(f"node {node_id} on transactions:\n{kafka.log_of(node_id, '[Transaction')}")
        raise
    finally:
        bouncing.cancel()
        await asyncio.wait([bouncing])
    bounces = bouncing.result()
    seconds = time.monotonic() - began
    show("reading")
    consumed = await kafka.tools.console_consumer(
        name, isolation_level="read_committed", timeout_ms=_QUIET_MS, timeout=600
    )
    summary = None
    if audit is not None:
        show("auditing")
        summary = await audit_campaign(kafka.bootstrap_servers, name, audit)
    (state,) = await kafka.tools.transactions("describe", "--transactional-id", name)
    return Report(
        version=kafka.version,
        protocol=2 if (await kafka.tools.features()).get("transaction.version", 0) >= 2 else 1,
        nodes=len(kafka.node_ids),
        plan=plan,
        seconds=seconds,
        journal=journal,
        interrupted=tuple(workers.interrupted),
        bounces=tuple(bounces),
        verdict=judge(plan, journal, consumed),
        last_state=state["TransactionState"],
        audit=summary,
    )
