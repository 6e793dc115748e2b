"""The releases of Apache Kafka whose tools and brokers are tested."""

from __future__ import annotations

import pytest

RELEASES = ["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)]
"""The newest of those that are supported; and the last that speaks the protocol's older versions."""
