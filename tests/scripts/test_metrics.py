"""docs/metrics.md says what the code says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_producer_publishes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "metrics.py"))
    written = (ROOT / "docs" / "metrics.md").read_text()
    assert written == script["page"](), "docs/metrics.md is out of date: run python scripts/metrics.py"
