"""``python -m benchmarks fleet``: that it measures what it says, not what comes out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.fleet.events import EVENTS
from benchmarks.fleet.fleet import Report, sizes
from benchmarks.fleet.point import START
from benchmarks.harness import results
from tests.benchmarks.environments import ENVIRONMENT
from tests.benchmarks.fleet.points import point


def test_sizes_are_all_partitions_with_the_most_brokers_and_all_brokers_with_the_most_partitions() -> None:
    made = sizes([10, 1000, 100], [1000, 100_000], 10_000, 500, 5)
    assert [(size.brokers, size.partitions, size.cluster) for size in made] == [
        (1000, 1000, 10_000),
        (1000, 100_000, 100_000),
        (100, 100_000, 100_000),
        (10, 100_000, 100_000),
    ]


def test_what_goes_wrong_is_a_problem() -> None:
    assert Report(ENVIRONMENT, [point()]).problems() == []
    bad = point(storm={"failed": 3}, death={"turn_p99_9": 6.5}, deletion={"failed": 7})
    first, second = Report(ENVIRONMENT, [bad]).problems()
    assert first == "10 brokers, 1,000 partitions, storm: 3 of 1,000 records failed"
    assert second.startswith("10 brokers, 1,000 partitions, death: 99.9 % of the loop's turns take up to 6.5 ms")


def test_what_grows_faster_than_the_fleet_is_a_problem() -> None:
    small = point(partitions=1000, refresh={"cpu": 0.2})
    proportional = point(partitions=10_000, refresh={"cpu": 1.1})
    assert Report(ENVIRONMENT, [small, proportional]).problems() == []
    worse = point(partitions=10_000, refresh={"cpu": 2.1})
    (problem,) = Report(ENVIRONMENT, [small, worse]).problems()
    assert problem.startswith("a partition of a refresh costs 2.00 times as much")
    dearer = point(partitions=10_000, steady={"cpu": 0.2}, refresh={"cpu": 1.2})
    (problem,) = Report(ENVIRONMENT, [small, dearer]).problems()
    assert problem.startswith("a record costs 2.00 times as much")


def test_markdown() -> None:
    text = Report(ENVIRONMENT, [point(rolling={"cpu": 0.35}), point(brokers=5)]).markdown()
    assert "10 brokers, 1,000 of 10,000 partitions in use, 100 records a second." in text
    assert "| 10.0 | 0.35 | 0.25 | 1.5 ms | 2.5 ms | 3.5 ms | 0 of 1,000 |" in text
    assert "| `death` | 500 | 2.0 | 2 | 0.5 | 10 | 0.5 ms | 1.5 ms | 2.0 ms |" in text
    assert "| 5 | 1,000 | 20 | 0.10 | 100 µs |" in text


def test_every_event_of_every_size_is_run_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = ["--brokers", "10", "--partitions", "20", "--cluster", "40", "--topic", "10", "--rate", "10"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "fleet", *options, "--json", str(figures)])
    status = main()
    (found,) = results.read(figures)["points"]
    assert found["size"] == {"brokers": 10, "partitions": 20, "cluster": 40, "topic": 10, "rate": 10}
    assert [one["event"] for one in found["happenings"]] == [START, *(event.name for event in EVENTS)]
    read = results.read_as(Report, figures)
    assert asdict(read)["points"] == [found]
    assert status == ("### Problems" in capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--brokers", "9"], "--brokers: at least 10"),
        (["--partitions", "0"], "--partitions"),
        (["--partitions", "1250"], "--partitions: whole topics"),
        (["--partitions", "500"], "--partitions: whole topics, and at least two"),
    ],
)
def test_nonsense_is_refused(
    options: list[str], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "fleet", *options])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert named in capsys.readouterr().err
