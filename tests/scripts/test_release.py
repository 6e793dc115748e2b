"""The version of a release."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "release.py"
PACKAGE = "aioproducer/build_info.py"
NAMES = runpy.run_path(str(SCRIPT))
Changelog, Wrong, check = NAMES["Changelog"], NAMES["Wrong"], NAMES["check"]

HEAD = "# Changelog\n\nWhat changes.\n\n## [Unreleased]\n"
FIRST = "\n## [0.1.0] - 2030-01-02\n\n- The first.\n"
SECOND = "\n## [0.2.0] - 2030-02-03\n\n### Added\n\n- The second.\n"
NEWS = "\n- News.\n"


def test_this_project_has_the_version_that_its_changelog_says() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "version", "tag"),
    [
        (HEAD + NEWS, "0.1.0", None),
        (HEAD + FIRST, "0.1.0", None),
        (HEAD + FIRST, "0.1.0", "v0.1.0"),
        (HEAD + NEWS + FIRST, "0.2.0", None),
        (HEAD + SECOND + FIRST, "0.2.0", "v0.2.0"),
    ],
)
def test_an_agreeing_changelog_version_and_tag_are_accepted(text: str, version: str, tag: str | None) -> None:
    check(Changelog(text), version, tag)


@pytest.mark.parametrize(
    ("text", "version", "tag", "reason"),
    [
        ("# Changelog\n", "0.1.0", None, r"the first heading must be ## \[Unreleased\]"),
        ("# Changelog\n" + FIRST, "0.1.0", None, "the first heading must be"),
        (HEAD, "0.1.0", None, "of which CHANGELOG.md says nothing"),
        (HEAD + FIRST, "0.0.9", None, "pyproject.toml has version 0.0.9, and CHANGELOG.md 0.1.0"),
        (HEAD + FIRST, "0.2.0", None, "of which CHANGELOG.md says nothing"),
        (HEAD + NEWS + FIRST, "0.1.0", None, "something is unreleased, and pyproject.toml still has version 0.1.0"),
        (HEAD + FIRST + SECOND, "0.1.0", None, "0.1.0 stands above 0.2.0, and is not newer"),
        (HEAD + SECOND.replace("2030", "2029") + FIRST, "0.2.0", None, "is not newer"),
        (HEAD + "\n## 0.1.0\n\n- x\n", "0.1.0", None, r"## 0.1.0 is not ## \[1.2.3\]"),
        (HEAD + "\n## [0.1.0] - 2030-13-02\n\n- x\n", "0.1.0", None, "month must be in"),
        (HEAD + "\n## [0.1.0] - 2030-01-02\n", "0.1.0", None, "nothing is below"),
        (HEAD + FIRST, "0.1", None, "'0.1' is not a version such as 1.2.3"),
        (HEAD + FIRST, "0.1.0", "v0.2.0", "the tag is v0.2.0, and pyproject.toml has version 0.1.0"),
        (HEAD + FIRST, "0.1.0", "0.1.0", "the tag is 0.1.0"),
        (HEAD + NEWS, "0.1.0", "v0.1.0", "CHANGELOG.md has no heading for 0.1.0"),
        (HEAD + NEWS + FIRST, "0.2.0", "v0.2.0", "CHANGELOG.md has no heading for 0.2.0"),
    ],
)
def test_a_disagreeing_changelog_version_or_tag_is_refused(
    text: str, version: str, tag: str | None, reason: str
) -> None:
    with pytest.raises(Wrong, match=reason):
        check(Changelog(text), version, tag)


def test_a_cut_can_be_released() -> None:
    text = Changelog(HEAD + NEWS + FIRST).cut("0.2.0", date(2030, 3, 4))
    cut = Changelog(text)
    check(cut, "0.2.0", "v0.2.0")
    assert (cut.unreleased, cut.notes("0.2.0"), cut.notes("0.1.0")) == ("", "- News.", "- The first.")
    assert cut.releases[0].day == date(2030, 3, 4)


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        (HEAD + FIRST, "0.2.0", "nothing is unreleased"),
        (HEAD + NEWS + FIRST, "0.1.0", "0.1.0 is not newer than 0.1.0"),
        (HEAD + NEWS + FIRST, "next", "'next' is not a version"),
    ],
)
def test_a_release_that_cannot_be_cut_is_refused(text: str, version: str, reason: str) -> None:
    with pytest.raises(Wrong, match=reason):
        Changelog(text).cut(version, date(2030, 3, 4))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What of this project a release reads and writes, in a folder of its own."""
    for folder in ("scripts", "aioproducer", "docs"):
        (tmp_path / folder).mkdir()
    for name in ("CHANGELOG.md", "README.md", "pyproject.toml", "scripts/release.py", "scripts/links.py", PACKAGE):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "scripts" / "release.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_what_the_release_makes_untrue_is_refused_with_its_place(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(f"{HEAD}\n- News.\n")
    (project / "README.md").write_text(
        "# A\n\nIt is Not on PyPI yet.\n\n    pip install .  # once there is a release: ...\n"
    )
    (project / "docs" / "a.md").write_text("Version 0.1.0 is\nbeing built.\n")
    places = [
        "README.md:3: It is Not on PyPI yet.",
        "README.md:5: pip install .  # once there is a release: ...",
        "docs/a.md:1: Version 0.1.0 is",
    ]
    refused = run(project, "cut", "999.0.0")
    assert (refused.returncode, refused.stderr.splitlines()[1:]) == (1, places)
    assert "- News." in Changelog((project / "CHANGELOG.md").read_text()).unreleased, "nothing is cut"

    (project / "README.md").write_text("# A\n")
    (project / "docs" / "a.md").unlink()
    assert run(project, "cut", "999.0.0").returncode == 0
    assert run(project, "check", "v999.0.0").returncode == 0
    (project / "README.md").write_text("# A\n\nNothing has been released.\n")
    refused = run(project, "check", "v999.0.0")
    assert (refused.returncode, refused.stderr.splitlines()[1:]) == (1, ["README.md:3: Nothing has been released."])
    assert run(project, "check").returncode == 0, "only a release is one"


def test_notes_have_absolute_links(project: Path) -> None:
    text = "- [A](docs/a.md#b), ![a flow](docs/flow.svg), [advisories](../../security), [there](https://there).\n"
    (project / "CHANGELOG.md").write_text(f"{HEAD}\n## [0.1.0] - 2030-01-02\n\n{text}")
    repository = tomllib.loads((project / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    assert run(project, "notes", "v0.1.0").stdout.strip() == (
        f"- [A]({repository}/blob/v0.1.0/docs/a.md#b), ![a flow]({repository}/raw/v0.1.0/docs/flow.svg), "
        f"[advisories]({repository}/security), [there](https://there)."
    )


def test_cutting_the_next_release_of_this_project(project: Path) -> None:
    changelog = Changelog((ROOT / "CHANGELOG.md").read_text())
    if not changelog.unreleased:
        assert "nothing is unreleased" in run(project, "cut", "999.0.0").stderr
        return
    rewritten = run(project, "cut", "999.0.0").stderr.splitlines()[1:]
    for name in ("CHANGELOG.md", "README.md"):
        lines = (project / name).read_text().splitlines(keepends=True)
        kept = [line for number, line in enumerate(lines, 1) if f"{name}:{number}: {line.strip()}" not in rewritten]
        (project / name).write_text("".join(kept))
    if rewritten:
        assert run(project, "cut", "999.0.0").returncode == 0
    assert run(project, "check", "v999.0.0").returncode == 0
    notes = run(project, "notes", "v999.0.0").stdout.strip()
    assert re.sub(r"\]\([^)]*\)", "", notes) == re.sub(r"\]\([^)]*\)", "", changelog.unreleased)
    assert not re.search(r"\]\((?!https://)", notes)
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["version"] == "999.0.0"
    assert '__version__ = "999.0.0"' in (project / PACKAGE).read_text()
    assert run(project, "check", "v1.0.0").returncode == 1
    (project / PACKAGE).write_text('__version__ = "1.0.0"\n')
    assert "build_info.py has version 1.0.0, and pyproject.toml 999.0.0" in run(project, "check").stderr
    (project / PACKAGE).write_text("")
    assert "has 0 lines such as __version__" in run(project, "check").stderr
    assert "python scripts/release.py cut" in run(project, "nonsense").stderr
