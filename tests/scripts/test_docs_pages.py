"""The pages of the documentation's site. ``scripts/docs`` builds it, and fails for links that lead nowhere."""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path

import pytest

from aioproducer import errors

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text()
NAMES = runpy.run_path(str(ROOT / "scripts" / "docs_pages.py"))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(NAMES["pages"]())


def test_the_navigation_has_each_page_once(pages: dict[str, str]) -> None:
    _, _, nav = CONFIG.partition("\nnav:\n")
    assert sorted(re.findall(r"[\w/.-]+\.md", nav)) == sorted(pages)


def test_links_lead_to_pages_or_to_the_repository(pages: dict[str, str]) -> None:
    for path, text in pages.items():
        for link in NAMES["LINK"].finditer(NAMES["CODE"].sub("", text)):
            to = link["to"]
            if to.endswith((".svg", ".png")):
                assert (ROOT / "docs" / to).exists()
            elif to:
                assert (Path(path).parent / to).as_posix() in pages or "../" in to, f"{path} links to {to}"
    assert "](sending.md)" in pages["index.md"]
    assert "](../index.md" not in pages["sending.md"]
    assert f"]({NAMES['REPOSITORY']}/blob/main/examples/" in pages["services.md"]


def test_the_name_of_a_file_becomes_its_title(pages: dict[str, str]) -> None:
    assert "[Sending](sending.md)" in pages["index.md"]
    assert "[docs/sending.md]" not in pages["index.md"]


def test_each_error_is_listed_with_its_code(pages: dict[str, str]) -> None:
    page = pages["reference/errors.md"]
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.KafkaError):
            assert page.count(f"| `{error.__name__}` |") == 1
    assert "| `MessageSizeTooLargeException` | 10 |" in page or "| `RecordTooLargeException` | 10 |" in page


def test_each_error_of_another_module_is_listed_with_that_module(pages: dict[str, str]) -> None:
    sections = pages["reference/errors.md"].split("\n## ")[1:]
    for name in NAMES["MODULES"]:
        for error in NAMES["public_errors"](importlib.import_module(name)):
            (section,) = (text for text in sections if f"| `{error.__name__}` |" in text)
            elsewhere = getattr(errors, error.__name__, None) is not error
            assert (f"\n\nImported from `{name}`.\n" in section) == elsewhere


def test_errors_of_spark_are_described_there(pages: dict[str, str]) -> None:
    """They cannot be imported without PySpark."""
    sources = "".join(path.read_text() for path in (ROOT / "aioproducer" / "spark").rglob("*.py"))
    names = re.findall(r"^class (\w+)\(KafkaError\)", sources, re.MULTILINE)
    assert len(names) > 5
    assert [name for name in names if f"`{name}`" not in pages["spark.md"]] == []


def test_each_command_is_listed_with_its_options(pages: dict[str, str]) -> None:
    page = pages["reference/cli.md"]
    for command in ("send", "read", "topics create", "broker", "perf", "audit", "demo"):
        assert f" aioproducer {command}\n" in page
    assert "| `--key-separator` |" in page


def test_public_names_are_documented_where_they_are_defined(pages: dict[str, str]) -> None:
    assert "::: aioproducer.producer.producer.KafkaProducer\n" in pages["reference/api/aioproducer.md"]
    assert "::: aioproducer.broker.cluster.EmbeddedCluster\n" in pages["reference/api/aioproducer.broker.md"]
    assert "](aioproducer.sync.md)" in pages["reference/api/index.md"]


@pytest.mark.parametrize(
    "link", ["../../spark.md", "../spark.markdown", "../../aioproducer/spark.py", "../../../setup.py"]
)
def test_a_link_that_leads_nowhere_is_refused(link: str) -> None:
    """Also outside docs/, where the site links to the repository, and mkdocs cannot know what is there."""
    with pytest.raises(SystemExit, match=re.escape(f"docs/internals/spark.md links to {link}, which is not there")):
        NAMES["with_site_links"](f"It is [here]({link}).", "docs/internals/spark.md")


def test_the_site_knows_its_address() -> None:
    """The links of 404.html begin with it, because that page is shown for any path."""
    owner, name = NAMES["REPOSITORY"].removeprefix("https://github.com/").split("/")
    assert f"\nsite_url: https://{owner}.github.io/{name}/ " in CONFIG
    assert f"\nrepo_url: {NAMES['REPOSITORY']}\n" in CONFIG


def test_each_version_is_published() -> None:
    assert re.search(r"^extra:\n(  .*\n)*  version:\n    provider: mike\b", CONFIG, re.MULTILINE)
    docs, release = ((ROOT / ".github" / "workflows" / f"{name}.yml").read_text() for name in ("docs", "release"))
    (tags,) = re.findall(r"^    tags: \[.*?\]", release, re.MULTILINE)
    assert f"\n    branches: [main]\n{tags} " in docs
    for command in ('publish "${GITHUB_REF_NAME#v}" latest', "publish dev"):
        assert f" scripts/docs {command}\n" in docs
