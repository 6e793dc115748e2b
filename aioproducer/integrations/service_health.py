"""What a service answers to health checks: whether to restart it, and whether to send it requests."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict
from typing import Any, Final

from aioproducer import HealthFinding, HealthThresholds, KafkaProducer
from aioproducer.integrations.answer import Answer

LIVE, READY = "/health/live", "/health/ready"
"""Where services tell it."""

FAILED: Final = "producer-failed"
NOT_NOW: Final = (FAILED, "buffer-available-bytes", "parked-bytes")
"""The metrics that describe the present moment. Failed records are reported, too, but are no reason to send requests
elsewhere: they cover the last minute, and one client with a record that is too large could put every instance out of
service."""


def liveness(producer: KafkaProducer, thresholds: HealthThresholds | None = None) -> Answer:
    """503 if the producer has failed for good, so that only a restart helps; else 200, whatever the findings."""
    return _answer(producer.health(thresholds), (FAILED,), [])


def readiness(producer: KafkaProducer, thresholds: HealthThresholds | None = None) -> Answer:
    """503 until the cluster is first reached, while memory for records is nearly used up, and after a failure."""
    unreached = math.isnan(producer.metrics()["metadata-age"])
    return _answer(producer.health(thresholds), NOT_NOW, ["no broker was reached yet"] if unreached else [])


def _answer(found: list[HealthFinding], reasons: Collection[str], why_not: list[str]) -> Answer:
    why_not = [finding.metric for finding in found if finding.metric in reasons] + why_not
    body: dict[str, Any] = {"ok": not why_not, "why_not": why_not, "findings": [_as_dict(one) for one in found]}
    return Answer(503 if why_not else 200, body, {})


def _as_dict(finding: HealthFinding) -> dict[str, Any]:
    return {**asdict(finding), "severity": finding.severity.name}
