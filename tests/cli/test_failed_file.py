from __future__ import annotations

import json
from pathlib import Path

import pytest

from aioproducer.cli.failed_file import FailedFile
from aioproducer.cli.running import InputError


def keep(file: FailedFile, raw: bytes, line: int, heading: bytes | None = None) -> None:
    file.keep(raw, heading=heading, line=line, outcome="unknown", cause="TimeoutException", message="é")


def test_records_as_they_came_and_the_reasons_beside_them(tmp_path: Path) -> None:
    file = FailedFile(tmp_path / "failed")
    keep(file, b"one\r", 3)
    keep(file, b"\xff", 7)
    file.close()
    assert (tmp_path / "failed").read_bytes() == b"one\r\n\xff\n"
    reasons = (tmp_path / "failed.reasons.ndjson").read_text(encoding="utf-8").splitlines()
    assert [json.loads(reason) for reason in reasons] == [
        {"line": line, "outcome": "unknown", "cause": "TimeoutException", "message": "é"} for line in (3, 7)
    ]


def test_a_heading_stands_once(tmp_path: Path) -> None:
    file = FailedFile(tmp_path / "failed.csv")
    keep(file, b"1,2", 2, b"a,b")
    keep(file, b"3,4", 3, b"a,b")
    file.close()
    assert (tmp_path / "failed.csv").read_bytes() == b"a,b\n1,2\n3,4\n"


def test_files_without_a_failed_record_are_removed(tmp_path: Path) -> None:
    file = FailedFile(tmp_path / "failed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["failed", "failed.reasons.ndjson"]
    file.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["failed", "failed.reasons.ndjson"])
def test_a_file_of_failed_records_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("kept")
    with pytest.raises(InputError, match="exists already"):
        FailedFile(tmp_path / "failed")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FailedFile(tmp_path / "nosuch" / "failed")
    with pytest.raises(InputError, match="exists already"):
        FailedFile(tmp_path)
    name = "x" * 250  # with the suffix it is too long for a file's name
    with pytest.raises(OSError, match="File name too long"):
        FailedFile(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
