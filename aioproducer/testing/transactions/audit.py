"""The delivery audit as a second judge: it compares topics of any size with the delivery logs of the producers."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aioproducer.spark.audit.summary import Summary

_MEMORY = "2g"


def deliveries(place: Path) -> Path:
    """The directory of the workers' delivery logs."""
    return place / "deliveries"


async def audit_campaign(bootstrap_servers: str, topic: str, place: Path) -> Summary:
    """Runs the audit in its own Spark session; the report and all tables are in ``place``."""
    from aioproducer.spark.audit.session import audit_session

    with tempfile.TemporaryDirectory(prefix="aioproducer-audit-", ignore_cleanup_errors=True) as scratch:
        spark = await asyncio.to_thread(audit_session, "local[*]", _MEMORY, scratch)
        try:
            return await audited(spark, bootstrap_servers, topic, place)
        finally:
            await asyncio.to_thread(spark.stop)


async def audited(spark: SparkSession, bootstrap_servers: str, topic: str, place: Path) -> Summary:
    """The findings of the audit in the topic and in the delivery logs of the workers."""
    from aioproducer.spark.audit.options import AuditOptions
    from aioproducer.spark.audit.run import audit_topics

    # A worker that is killed has not logged its last half second, so missing numbers cannot be explained.
    options = AuditOptions(now_ms=time.time_ns() // 1_000_000, unique=True, partial=True)
    return await audit_topics(
        spark,
        {"bootstrap.servers": bootstrap_servers},
        [topic],
        str(place),
        options,
        delivery_logs=[str(deliveries(place) / "*.jsonl")],
        read_committed=True,
    )
