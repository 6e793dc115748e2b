"""Every link of a document to another, or to a heading, leads somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_every_block import ROOT, TEXTS

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$|^    [^\n]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """As GitHub makes them: small letters, blanks as hyphens, and no other punctuation."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("document", TEXTS)
def test_links_lead_somewhere(document: str) -> None:
    for link in LINK.findall(CODE.sub("", TEXTS[document])):
        if link.startswith(("https:", "http:", "../../")):  # ../../: what the repository's site has beside the files
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / document).parent / name if name else ROOT / document
        assert target.exists(), f"{document} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target.read_text()), f"{document} links to {link}, and there is no such heading"


def test_links_are_found() -> None:
    """Else the test above could not fail."""
    assert "docs/sending.md" in LINK.findall(CODE.sub("", TEXTS["README.md"]))
    assert anchors("## What is *not* obvious?\n") == {"what-is-not-obvious"}
