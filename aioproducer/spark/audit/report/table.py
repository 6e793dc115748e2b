"""Tables whose rows ``static/report.js`` sorts and filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

Rows = Sequence[Sequence[object]]

_SHORT: Final = 20
"""Characters of a cell that is not broken into lines."""


def table(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    """Numbers to the right, everything else as text."""
    yield from grouped_table(columns, {"": rows})


def grouped_table(columns: Sequence[str], groups: Mapping[str, Rows]) -> Iterator[str]:
    """Rows under headings, so that a long name is there once. Each group is sorted by itself. No heading, if empty."""
    yield '<div class="scroll"><table>'
    if any(columns):
        yield "".join(
            ["<thead><tr>", *(f'<th scope="col">{escape(column)}</th>' for column in columns), "</tr></thead>"]
        )
    for heading, rows in groups.items():
        yield "<tbody>"
        if heading:
            yield f'<tr class="group"><th scope="rowgroup" colspan="{len(columns)}">{escape(heading)}</th></tr>'
        yield from (f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        yield "</tbody>"
    yield "</table></div>"


def by_heading(rows: Iterable[tuple[str, Sequence[object]]]) -> dict[str, list[Sequence[object]]]:
    """The rows of each heading, in the order in which headings first occur."""
    groups: dict[str, list[Sequence[object]]] = {}
    for heading, row in rows:
        groups.setdefault(heading, []).append(row)
    return groups


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
        return f'<td class="number" data-value="{value}">{shown}</td>'
    text = "none" if value is None else str(value)
    kind = ' class="short"' if len(text) <= _SHORT else ""
    return f"<td{kind}>{escape(text)}</td>"
