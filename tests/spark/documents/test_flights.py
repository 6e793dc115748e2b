"""``examples/flights_spark.py``, with a few flights, in the session of the other tests."""

from __future__ import annotations

import asyncio
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer.testing.threaded_cluster import ThreadedCluster

pytestmark = pytest.mark.conformance

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights_spark.py"
FLIGHTS = "tailnum,origin,dest\nN14228,EWR,IAH\nN24211,LGA,IAH\nN14228,EWR,IAH\n,JFK,MIA\n"


def test_flights_are_sent_once_and_compared_and_audited(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flights.csv"
    file.write_text(FLIGHTS)
    with ThreadedCluster() as cluster:
        servers = cluster.bootstrap_servers
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), servers, str(file)])
        names = runpy.run_path(str(EXAMPLE), run_name="the_example")
        for topic in ("flights", names["log_of"]("flights")):
            asyncio.run(names["create_topic"](servers, topic))
        options = {"kafka.bootstrap.servers": servers}
        rows = names["records"](names["flights"](spark, str(tmp_path)))
        for _ in range(2):
            names["write"](rows, options, "flights")
        assert names["report"](spark, rows, options, "flights")
        assert "4 flights sent, 4 read: 0 missing, 0 twice or of others" in capsys.readouterr().out
        assert not names["report"](spark, rows.limit(3), options, "flights")
        assert asyncio.run(names["audit"](spark, servers, "flights", str(tmp_path / "audit")))
        assert "OK: 4 records, and every check passed" in capsys.readouterr().out
        assert (tmp_path / "audit" / "report.html").exists()
