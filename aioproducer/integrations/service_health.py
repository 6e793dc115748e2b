"""A service's answers to health checks: whether to restart it, and whether to send it requests."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final

from aioproducer import HealthFinding, HealthThresholds, KafkaProducer
from aioproducer.integrations.answer import Answer

__all__ = ["liveness", "readiness"]

LIVE, READY = "/health/live", "/health/ready"
"""The paths of the two checks."""

FAILED: Final = "producer-failed"
NOT_NOW: Final = (FAILED, "unreachable-age", "buffer-available-bytes", "parked-bytes")
"""The metrics that make a service unready: those of the present moment. Records that failed in the last minute are
reported, too, but do not count: one client with a record that is too large could put every instance out of service."""


def liveness(producers: Sequence[KafkaProducer[Any, Any]], thresholds: HealthThresholds | None = None) -> Answer:
    """503 if a producer has failed for good, so that only a restart helps; else 200, whatever the findings."""
    return _answer([_Check(producer, thresholds, (FAILED,)) for producer in producers])


def readiness(producers: Sequence[KafkaProducer[Any, Any]], thresholds: HealthThresholds | None = None) -> Answer:
    """503 until each producer has reached its cluster, while no broker can be reached, while memory for records is
    nearly used up, and after a producer has failed for good."""
    checks = [_Check(producer, thresholds, NOT_NOW) for producer in producers]
    for check in checks:
        if math.isnan(check.producer.metrics()["metadata-age"]):
            check.why_not.append("no broker was reached yet")
    return _answer(checks)


class _Check:
    """One producer's health; findings about the metrics in ``reasons`` make it not ready, or not alive."""

    def __init__(
        self, producer: KafkaProducer[Any, Any], thresholds: HealthThresholds | None, reasons: Collection[str]
    ) -> None:
        self.producer = producer
        self.findings = producer.health(thresholds)
        self.why_not = [finding.metric for finding in self.findings if finding.metric in reasons]


def _answer(checks: Sequence[_Check]) -> Answer:
    """With several producers, each reason and finding names its producer."""
    why_not: list[str] = []
    findings: list[dict[str, Any]] = []
    for check in checks:
        client_id = check.producer.config.client_id
        whose = {"client_id": client_id} if len(checks) > 1 else {}
        why_not += [f"{client_id}: {why}" if whose else why for why in check.why_not]
        findings += [{**whose, **_as_dict(finding)} for finding in check.findings]
    return Answer(503 if why_not else 200, {"ok": not why_not, "why_not": why_not, "findings": findings}, {})


def _as_dict(finding: HealthFinding) -> dict[str, Any]:
    return {**asdict(finding), "severity": finding.severity.name}
