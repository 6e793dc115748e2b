from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.harness import results
from benchmarks.spark import audit


@pytest.mark.parametrize("right", [True, False])
def test_the_exit_status_is_the_verdict(
    right: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(step: str, records: int, place: str, memory: str) -> tuple[str, int]:
        others = records / 10_000
        times = {"seconds": 4.0, "cpu_seconds": 5.4, "others": others}
        return json.dumps({"records": records, "right": right, **times}), 3 << 20

    monkeypatch.setattr(audit, "run", run)
    file = tmp_path / "figures.json"
    assert audit.main(["--records", "1000", "900", "--json", str(file)]) == (not right)
    rows = capsys.readouterr().out
    assert rows.endswith(f"| 900 | 4 | 225 | 5 | 3 | {'yes' if right else 'NO'} |\n")
    assert results.read_as(audit.Report, file).environment.others == 0.1, "of the one that was disturbed most"
