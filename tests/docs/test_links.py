"""Every link of a document to another, or to a heading, leads somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_every_block import ROOT, TEXTS

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BESIDE_THE_FILES = ("../../actions/", "../../security/")
"""What GitHub has beside the files of a repository, as its documents at the top link to it."""

CODE = re.compile(r"^```.*?^```$|^    [^\n]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """As GitHub makes them: small letters, blanks as hyphens, and no other punctuation."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("document", TEXTS)
def test_links_lead_somewhere(document: str) -> None:
    for link in LINK.findall(CODE.sub("", TEXTS[document])):
        if link.startswith(("https:", "http:")) or ("/" not in document and link.startswith(BESIDE_THE_FILES)):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / document).parent / name if name else ROOT / document
        there = target.resolve().is_relative_to(ROOT) and target.exists()
        assert there, f"{document} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target.read_text()), f"{document} links to {link}, and there is no such heading"


def test_links_are_found() -> None:
    """Else the test above could not fail."""
    assert "docs/sending.md" in LINK.findall(CODE.sub("", TEXTS["README.md"]))
    assert "LICENSE" in LINK.findall(TEXTS["README.md"])  # around a picture
    assert "../spark.md" in LINK.findall(TEXTS["docs/internals/spark.md"])
    assert anchors("## What is *not* obvious?\n") == {"what-is-not-obvious"}
