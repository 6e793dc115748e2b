"""``python -m benchmarks schemas``."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import schemas
from benchmarks.schemas import AVRO, LIBRARY, MOST, OURS, THEIRS, Report, Run
from tests.benchmarks.test_comparison import ENVIRONMENT


def test_all_ways_write_the_same() -> None:
    for format in schemas.formats():
        if format.title.startswith("JSON"):
            continue  # blanks differ
        made = {name: way(format.data) for name, way in format.ways.items()}
        library, ours = made[LIBRARY], made[OURS]
        assert isinstance(library, bytes)
        assert isinstance(ours, bytes)
        assert ours.startswith(b"\x00\x00\x00\x00\x01")
        assert ours.endswith(library)
        theirs = made[THEIRS]
        assert isinstance(theirs, bytes)
        assert (theirs[:1], theirs[5:]) == (ours[:1], ours[5:])


def report(besides: float) -> Report:
    runs = [Run(AVRO, LIBRARY, number, 2.0 + number) for number in (1, 2, 3)]
    return Report(ENVIRONMENT, 10, 3, [*runs, *(Run(AVRO, OURS, run.round, run.us + besides) for run in runs)])


def test_the_target_is_a_difference_round_by_round() -> None:
    assert report(0.5).us(AVRO, OURS) == 4.5
    assert report(0.5).besides(AVRO, OURS) == 0.5
    assert report(0.5).problems() == []
    assert report(MOST + 0.5).problems() == ["Avro, a dict: µs a record besides fastavro ≤ 1: it is 1.50"]


def test_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "schemas.json"
    assert schemas.main(["--records", "10", "--rounds", "2", "--json", str(file)]) in (0, 1)
    assert {run["way"] for run in json.loads(file.read_text())["runs"]} == {LIBRARY, OURS, THEIRS}
