"""Counts the rooms of packages, their floors and the arrows between them: ``python scripts/rooms.py [CHECKOUT]``.

A room is a file or folder directly in the package. An arrow says that a room imports another, however many of its files
do. A room's floor is one above the highest that it imports; a circle is a set of rooms that import each other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("aioproducer", "aioproducer.producer", "aioproducer.broker")


class Rooms(NamedTuple):
    """``floors`` is None where there is a circle."""

    files: int
    rooms: int
    arrows: int
    floors: int | None
    circle: tuple[str, ...]


def imports(checkout: Path) -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports."""
    modules = {}
    for path in sorted(checkout.glob("aioproducer/**/*.py")):
        name = ".".join(path.relative_to(checkout).with_suffix("").parts)
        modules[name.removesuffix(".__init__")] = path
    return {name: _imported(path, modules) for name, path in modules.items()}


def _imported(path: Path, modules: Mapping[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(modules)


def rooms_of(package: str, graph: Mapping[str, set[str]]) -> Rooms:
    below: dict[str, set[str]] = {}
    folders = set()
    for module, imported in graph.items():
        room, _, inside = module.removeprefix(f"{package}.").partition(".")
        if not module.startswith(f"{package}."):
            continue
        if inside:
            folders.add(room)
        others = {
            one.removeprefix(f"{package}.").partition(".")[0] for one in imported if one.startswith(f"{package}.")
        }
        below.setdefault(room, set()).update(others - {room})
    arrows = sum(map(len, below.values()))
    files = len(below) - len(folders)
    try:
        order = list(TopologicalSorter(below).static_order())
    except CycleError as error:
        return Rooms(files, len(below), arrows, None, tuple(error.args[1]))
    floors: dict[str, int] = {}
    for room in order:
        floors[room] = 1 + max((floors[one] for one in below[room]), default=0)
    return Rooms(files, len(below), arrows, max(floors.values()), ())


def main() -> None:
    graph = imports(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    for package in PACKAGES:
        found = rooms_of(package, graph)
        floors = f"a circle: {' → '.join(found.circle)}" if found.floors is None else f"{found.floors} floors"
        sys.stdout.write(
            f"{package}: {found.rooms} rooms, {found.files} of them files; {found.arrows} arrows; {floors}\n"
        )


if __name__ == "__main__":
    main()
