"""The Python in docs/spark.md, and what README.md says of Spark, runs as it stands on an embedded broker.

The blocks share their names, as they do for who reads from top to bottom; a reader's own frames are at hand.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import time
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from aioproducer.sync import KafkaProducer
from aioproducer.testing import ThreadedCluster

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[3]


def blocks(document: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def carry_out(block: str, names: dict[str, Any]) -> None:
    compiled = compile(block, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(compiled, names)
    if inspect.iscoroutine(found):
        asyncio.run(found)


def test_the_blocks_of_the_documents_run(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from aioproducer.spark.audit import run as audit

    # An audit takes long, and test_job.py has it: here its call only has to fit.
    audited = create_autospec(audit.audit_topics)
    monkeypatch.setattr(audit, "audit_topics", audited)
    with ThreadedCluster(topics=["in", "orders", "payments"]) as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            producer.send("in", b"streamed")
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        frame = spark.range(0, 3, 1, 1).selectExpr("id", "CAST(id AS STRING) AS key")
        frame.write.parquet(str(tmp_path / "orders.parquet"))
        streamed = spark.readStream.format("aioproducer").options(**servers, subscribe="in")
        names = {
            "asyncio": asyncio,
            "df": frame,
            "options": {**servers, "topic": "orders", "deliveryGuarantee": "exactly-once"},
            "spark": spark,
            "stream": streamed.option("startingOffsets", "earliest").load().select("value"),
            "time": time,
        }
        literals = {"localhost:9092": cluster.bootstrap_servers, "orders.parquet": str(tmp_path / "orders.parquet")}
        (of_readme,) = blocks("README.md", "py")
        for number, block in enumerate([of_readme, *blocks("docs/spark.md", "python")]):
            code = block.replace("/checkpoints/orders", str(tmp_path / f"checkpoint-{number}"))
            for literal, here in literals.items():
                code = code.replace(literal, here)
            carry_out(code, names)
            for query in spark.streams.active:
                query.processAllAvailable()
                query.stop()
        values = [record.value for record in cluster.records("orders")]
        assert values.count(b"streamed") == 2
        assert values.count(b'{"id":0,"key":"0"}') == 3
        assert [record.value for record in cluster.records("done")] == [b"orders"]
        assert "streamed" in capsys.readouterr().out
    audited.assert_awaited_once()
