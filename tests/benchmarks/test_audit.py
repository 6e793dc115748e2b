from __future__ import annotations

import json

import pytest

from benchmarks import audit


@pytest.mark.parametrize("right", [True, False])
def test_the_exit_status_is_the_verdict(
    right: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(step: str, records: int, place: str, memory: str) -> tuple[str, int]:
        return json.dumps({"records": records, "seconds": 4.0, "right": right}), 3 << 20

    monkeypatch.setattr(audit, "run", run)
    assert audit.main(["--records", "1000"]) == (not right)
    assert capsys.readouterr().out.endswith(f"| 1,000 | 4 | 250 | 3 | {'yes' if right else 'NO'} |\n")
