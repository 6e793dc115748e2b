"""The third-party files in the report."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import pytest

from aioproducer.spark.audit.report.page import html

from .test_page import of_topics

STATIC = files("aioproducer.spark.audit.report") / "static"


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("LICENSE", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
        ("uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
        ("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    ],
)
def test_uplot_is_what_its_authors_have_published(name: str, digest: str) -> None:
    assert sha256((STATIC / "uplot" / name).read_bytes()).hexdigest() == digest


def test_the_report_needs_no_other_file_and_has_the_licence() -> None:
    text = html(of_topics(["one", "two"]))
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert not re.search(r"<link|<img|<script[^>]+src=|@import|url\(|fetch\(|XMLHttpRequest", text)
    assert len(text) < 80_000


def test_no_script_ends_early() -> None:
    """An HTML parser ends a script at "</script", and takes one with "<!--" for another thing."""
    for name in ("report.js", "uplot/uPlot.iife.min.js"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert not re.search(r"</script|<!--", text, re.IGNORECASE)
    assert "*/" not in (STATIC / "uplot" / "LICENSE").read_text(encoding="utf-8"), "it stands in a comment"
