"""README.md says what there is to install, and what pyproject.toml and the changelog say, too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.docs.test_every_block import TEXTS

ROOT = Path(__file__).parents[2]
README = TEXTS["README.md"]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
INSTALLS = re.compile(r"^.*pip install .*\baioproducer\b", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$|^    [^\n]*$", re.DOTALL | re.MULTILINE)


def with_those_it_names(extra: str) -> set[str]:
    """The extra, and those that it installs."""
    found = {extra}
    for requirement in EXTRAS[extra]:
        for named in re.findall(r"^aioproducer\[([\w,-]+)\]$", requirement):
            found |= {each for name in named.split(",") for each in with_those_it_names(name)}
    return found


def test_the_table_has_each_extra_and_those_of_all_above_it() -> None:
    table = README.partition("| extra | adds |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    extras = [name for cell in cells for name in re.findall(r"`(.*?)`", cell)]
    assert sorted(extras) == sorted(EXTRAS)
    assert {*extras[: extras.index("all") + 1]} == with_those_it_names("all")


def test_it_says_that_there_is_no_release_until_there_is_one() -> None:
    released = re.search(r"^## \[\d", TEXTS["CHANGELOG.md"], re.MULTILINE) is not None
    assert ("aioproducer is not on PyPI yet" in README) == (not released)
    assert ("pypi.org/project/aioproducer" in README) <= released


def test_a_page_that_installs_the_package_says_where_it_is() -> None:
    pages = [
        document
        for document, text in TEXTS.items()
        if document.startswith("docs/") and any(INSTALLS.search(block) for block in BLOCK.findall(text))
    ]
    assert len(pages) > 4
    assert [document for document in pages if "](../README.md#installing)" not in TEXTS[document]] == []


def test_who_is_faster() -> None:
    """Of the clients in the first table: so says the sentence before it."""
    said = "In this table that is so for franz-go, which is written in Go."
    assert said in README.replace("\n", " ")
    lead = README.partition("<!-- figures: lead -->")[2].partition("<!-- end of figures -->")[0]
    heading, _, *rows = [line.strip("| ").split(" | ") for line in lead.splitlines() if line.startswith("|")]
    slower = {
        (row[0].partition(", ")[0], client)
        for row in rows
        for client, ratio in zip(heading, row, strict=True)
        if client.startswith("÷") and ratio.startswith("0.")
    }
    assert {client for _, client in slower} == {"÷ franz-go"}
