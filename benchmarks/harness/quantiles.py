"""Quantiles of what one run has measured."""

from __future__ import annotations

from collections.abc import Collection

SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def quantiles(samples: Collection[float]) -> dict[str, float]:
    """By name, the least sample that so large a share of them does not exceed; empty without samples."""
    ordered = sorted(samples)
    count = len(ordered)
    return {name: ordered[max(0, -int(-share * count // 1) - 1)] for name, share in SHARES.items()} if count else {}
