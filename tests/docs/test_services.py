"""docs/services.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from aioproducer.integrations.answer import RETRY_AFTER
from aioproducer.integrations.metric_names import joined_name
from aioproducer.metrics import every_distribution, every_metric

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "services.md").read_text()


def test_its_metrics_exist() -> None:
    for separator, pattern in (("_", r"kafka_producer_\w+"), (".", r"kafka\.producer[\w.]*\w")):
        known = {joined_name(name, separator) for name, _ in every_metric()}
        if separator == "_":
            histograms = {joined_name(one.name, separator) for one in every_distribution()}
            known |= {f"{name}{series}" for name in histograms for series in ("", "_bucket")}
        used = set(re.findall(pattern, TEXT))
        assert used
        assert used <= known


def test_its_events_are_logged_and_no_others() -> None:
    table = TEXT.partition("| `event` |")[2].partition("\n\n")[0]
    rooms = ("net", "producer", "security", "tasks", "integrations", "schema_registry")
    sources = "".join(path.read_text() for room in rooms for path in (ROOT / "aioproducer" / room).rglob("*.py"))
    events = set(re.findall(r'(?:"event": |_fields\()"(\w+)"', sources))
    assert set(re.findall(r"^\| `(\w+)` \| [A-Z]+ \|", table, re.MULTILINE)) == events


def test_retry_after_is_the_default_it_says() -> None:
    (said,) = re.findall(r"`retry_after=(\d+)`", TEXT)
    assert int(said) == RETRY_AFTER
