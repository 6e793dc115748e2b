"""docs/services.md names what there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from aioproducer.integrations.answer import RETRY_AFTER
from aioproducer.integrations.metric_names import joined_name
from aioproducer.metrics import every_distribution, every_metric
from tests.docs.test_every_block import TEXTS

ROOT = Path(__file__).parents[2]
TEXT = TEXTS["docs/services.md"]
WORDS = " ".join(TEXT.split())


def limits(code: str, name: str) -> tuple[int, int]:
    """The seconds before and after a record is accepted, which are the same wherever the code has them."""
    dicts = {found: ast.literal_eval(found) for found in re.findall(rf"^{name} = (\{{.*\}})$", code, re.MULTILINE)}
    assert dicts
    ((before, after),) = {(each["max_block_ms"], each["delivery_timeout_ms"]) for each in dicts.values()}
    return before // 1000, after // 1000


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


def test_time_outs_are_those_of_the_code() -> None:
    readme, frameworks = (" ".join(TEXTS[name].split()) for name in ("README.md", "docs/frameworks.md"))
    before, after = limits(TEXTS["README.md"] + TEXT + TEXTS["docs/frameworks.md"], "timeouts")
    request = before + after
    assert f"sets {before} s and {after} s: during an outage its requests end within {request} seconds" in WORDS
    assert f"at most {request} + {after} = {request + after} seconds, in the examples" in WORDS
    assert f"each request within {request} seconds and ends within {request + after} seconds" in readme
    assert f"a request to {request} seconds and closing to {after}" in frameworks


def test_time_outs_are_those_of_the_examples() -> None:
    before, after = limits("".join(path.read_text() for path in (ROOT / "examples").rglob("*.py")), "TIMEOUTS")
    request = before + after
    assert f"{before} s and {after} s, so their requests end within {request} seconds" in WORDS
    assert f"in the examples {request} + {after} = {request + after}." in WORDS
    assert f"time-outs allow ({request} seconds)" in WORDS
    trouble = TEXT.partition("<!-- figures: trouble -->")[2].partition("<!-- end of figures -->")[0]
    longest = [float(seconds) for seconds in re.findall(r"\| ([\d.]+) s \|", trouble)]
    assert longest
    assert max(longest) < request
