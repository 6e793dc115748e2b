"""The version of a release."""

from __future__ import annotations

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


def test_cutting_the_next_release_of_this_project(tmp_path: Path) -> None:
    for folder in ("scripts", "aioproducer"):
        (tmp_path / folder).mkdir()
    package = "aioproducer/build_info.py"
    for name in ("CHANGELOG.md", "pyproject.toml", "scripts/release.py", package):
        shutil.copy(ROOT / name, tmp_path / name)
    script = tmp_path / "scripts" / "release.py"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)

    changelog = Changelog((ROOT / "CHANGELOG.md").read_text())
    if not changelog.unreleased:
        assert "nothing is unreleased" in run("cut", "999.0.0").stderr
        return
    assert run("cut", "999.0.0").returncode == 0
    assert run("check", "v999.0.0").returncode == 0
    assert run("notes", "v999.0.0").stdout.strip() == changelog.unreleased
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["version"] == "999.0.0"
    assert '__version__ = "999.0.0"' in (tmp_path / package).read_text()
    assert run("check", "v1.0.0").returncode == 1
    (tmp_path / package).write_text('__version__ = "1.0.0"\n')
    assert "build_info.py has version 1.0.0, and pyproject.toml 999.0.0" in run("check").stderr
    (tmp_path / package).write_text("")
    assert "has 0 lines such as __version__" in run("check").stderr
    assert "python scripts/release.py cut" in run("nonsense").stderr
