from __future__ import annotations

import time

import pytest

from aioproducer.cli.commands.start import Start


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start()),
        ("latest", Start(last=0)),
        ("0", Start(offset=0)),
        ("12", Start(offset=12)),
        ("-12", Start(last=12)),
        ("@1700000000123", Start(timestamp_ms=1_700_000_000_123)),
        ("2023-11-14T22:13:20.123Z", Start(timestamp_ms=1_700_000_000_123)),
        ("2023-11-14T23:13:20+01:00", Start(timestamp_ms=1_700_000_000_000)),
        ("1970-01-01T00:00Z", Start(timestamp_ms=0)),
    ],
)
def test_places(text: str, start: Start) -> None:
    assert Start.parse(text) == start


def test_a_time_without_a_zone_is_one_of_this_machine() -> None:
    seconds = time.mktime((2026, 1, 31, 9, 30, 0, 0, 0, -1))
    assert Start.parse("2026-01-31T09:30") == Start(timestamp_ms=round(seconds * 1000))


@pytest.mark.parametrize("text", ["", "end", "+1", "--1", "@", "@-1", "1.5", "9" * 19, "2026-13-01", "1969-12-31", "٣"])
def test_a_text_that_is_no_start_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither earliest, latest, an offset, -N nor a time since 1970"):
        Start.parse(text)
