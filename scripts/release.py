"""The version of a release is that of CHANGELOG.md's newest heading; pyproject.toml, package and tag must agree.

python scripts/release.py check            is the changelog well formed, and do pyproject.toml and the package agree?
python scripts/release.py check v0.1.0     and is this what the tag releases, without a word that it makes untrue?
python scripts/release.py cut 0.1.0        what is unreleased becomes this version, today
python scripts/release.py notes v0.1.0     what the changelog says of it, with absolute links
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
UNRELEASED = "Unreleased"
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
RELEASED = re.compile(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})")

UNTRUE = re.compile(
    r"not on PyPI|once there is a release|version [\d.]+ is being built|nothing has been released".replace(" ", r"\s+"),
    re.IGNORECASE,
)
"""What the documents say before the first release, and no release may say."""

Version = tuple[int, ...]


class Wrong(Exception):
    """Why nothing can be released."""


class Release(NamedTuple):
    version: str
    day: date
    text: str


class Changelog:
    """``unreleased`` is the text below that heading; ``releases`` are the newest first."""

    def __init__(self, text: str) -> None:
        self.text = text
        _, *parts = HEADING.split(text)
        sections = list(zip(parts[::2], parts[1::2], strict=True))
        if not sections or sections[0][0] != f"[{UNRELEASED}]":
            raise Wrong(f"CHANGELOG.md: the first heading must be ## [{UNRELEASED}]")
        self.unreleased = sections[0][1].strip()
        self.releases = [_release(heading, body) for heading, body in sections[1:]]
        for newer, older in zip(self.releases, self.releases[1:], strict=False):
            if number(newer.version) <= number(older.version) or newer.day < older.day:
                raise Wrong(f"CHANGELOG.md: {newer.version} stands above {older.version}, and is not newer")

    @property
    def newest(self) -> str | None:
        return self.releases[0].version if self.releases else None

    def cut(self, version: str, day: date) -> str:
        """The text in which everything unreleased is of this version."""
        if not self.unreleased:
            raise Wrong("CHANGELOG.md: nothing is unreleased")
        if self.newest is not None and number(version) <= number(self.newest):
            raise Wrong(f"{version} is not newer than {self.newest}")
        heading = f"## [{UNRELEASED}]\n"
        return self.text.replace(heading, f"{heading}\n## [{version}] - {day.isoformat()}\n", 1)

    def notes(self, version: str) -> str:
        for release in self.releases:
            if release.version == version:
                return release.text
        raise Wrong(f"CHANGELOG.md has no version {version}")


def _release(heading: str, body: str) -> Release:
    found = RELEASED.fullmatch(heading)
    if found is None:
        raise Wrong(f"CHANGELOG.md: ## {heading} is not ## [1.2.3] - 2030-12-31")
    try:
        day = date.fromisoformat(found[2])
    except ValueError as error:
        raise Wrong(f"CHANGELOG.md: ## {heading}: {error}") from error
    if not body.strip():
        raise Wrong(f"CHANGELOG.md: nothing is below ## {heading}")
    return Release(found[1], day, body.strip())


def number(version: str) -> Version:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Wrong(f"{version!r} is not a version such as 1.2.3")
    return tuple(map(int, version.split(".")))


def check(changelog: Changelog, version: str, tag: str | None = None) -> None:
    """``version`` is pyproject.toml's: the newest release's, or that of the next if anything is unreleased."""
    newest = changelog.newest
    if newest is not None and number(version) < number(newest):
        raise Wrong(f"pyproject.toml has version {version}, and CHANGELOG.md {newest}")
    if version == newest and changelog.unreleased:
        raise Wrong(f"CHANGELOG.md: something is unreleased, and pyproject.toml still has version {version}")
    if version != newest and not changelog.unreleased:
        raise Wrong(f"pyproject.toml has version {version}, of which CHANGELOG.md says nothing")
    if tag is None:
        return
    if tag != f"v{version}":
        raise Wrong(f"the tag is {tag}, and pyproject.toml has version {version}")
    if version != newest:
        raise Wrong(f"CHANGELOG.md has no heading for {version}: python scripts/release.py cut {version}")


def check_documents(paths: Iterable[Path]) -> None:
    """No document says that nothing has been released: cut and the release itself end here if one does."""
    found = []
    for path in paths:
        text = path.read_text("utf-8")
        for words in UNTRUE.finditer(text):
            line = text.count("\n", 0, words.start())
            found.append(f"{path.relative_to(ROOT)}:{line + 1}: {text.splitlines()[line].strip()}")
    if found:
        raise Wrong("\n".join(["the release would make these lines untrue; rewrite them first:", *found]))


class Source:
    """A file with a line that assigns the version to a name."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._name = name
        self._line = re.compile(rf'^{name} = "(.*)"$', re.MULTILINE)

    def version(self) -> str:
        versions = self._line.findall(self.path.read_text("utf-8"))
        if len(versions) != 1:
            raise Wrong(f'{self.path.name} has {len(versions)} lines such as {self._name} = "1.2.3", and needs one')
        return str(versions[0])

    def write(self, version: str) -> None:
        text = self.path.read_text("utf-8")
        self.path.write_text(self._line.sub(f'{self._name} = "{version}"', text), "utf-8")


PROJECT = Source(ROOT / "pyproject.toml", "version")
PACKAGE = Source(ROOT / "aioproducer" / "build_info.py", "__version__")


def repository() -> str:
    """Its address."""
    return str(tomllib.loads(PROJECT.path.read_text("utf-8"))["project"]["urls"]["Repository"])


def main(command: str, *arguments: str) -> None:
    changes = ROOT / "CHANGELOG.md"
    documents = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    changelog = Changelog(changes.read_text("utf-8"))
    match command, arguments:
        case "check", ([] | [_]):
            check(changelog, PROJECT.version(), *arguments)
            if PACKAGE.version() != PROJECT.version():
                raise Wrong(
                    f"aioproducer/build_info.py has version {PACKAGE.version()}, and pyproject.toml {PROJECT.version()}"
                )
            if arguments:
                check_documents(documents)
        case "cut", [version]:
            cut = changelog.cut(version, date.today())
            check_documents(documents)
            PROJECT.write(version)
            PACKAGE.write(version)
            changes.write_text(cut, "utf-8")
        case "notes", [tag]:
            version = tag.removeprefix("v")
            absolute = runpy.run_path(str(ROOT / "scripts" / "links.py"))["absolute"]
            print(absolute(changelog.notes(version), version, repository()))
        case _:
            raise Wrong(__doc__ or "")


if __name__ == "__main__":
    try:
        main(*(sys.argv[1:] or ["help"]))
    except Wrong as wrong:
        sys.exit(str(wrong))
