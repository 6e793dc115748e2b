"""Single rules, where the planted faults of the whole audit do not reach: wraps, epochs, retention, ways to be torn.

Each case is a topic of its own, so that a rule judges all of them at once.
"""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions

pytestmark = pytest.mark.conformance

OPTIONS = AuditOptions(now_ms=1_000_000)
COLUMNS = (
    "topic string, partition int, batch_offset long, records long, first_offset long, last_offset long, "
    "batch_records int, batch_bytes int, producer_id long, producer_epoch int, base_sequence long, "
    "transactional boolean, control boolean, committed boolean, first_ms long, last_ms long, first_counter long, "
    "last_counter long"
)
NAMES = [column.split()[0] for column in COLUMNS.split(", ")]
BATCH = {
    "partition": 0,
    "records": 10,
    "batch_records": 10,
    "batch_bytes": 500,
    "producer_id": 7,
    "producer_epoch": 0,
    "transactional": False,
    "control": False,
    "first_ms": 0,
    "last_ms": 0,
}
Rows = list[dict[str, Any]]
Told = list[tuple[Kind, int | None, int]]


def batch(offset: int, sequence: int | None = None, **columns: Any) -> dict[str, Any]:
    """A batch of ten records."""
    place = {"batch_offset": offset, "first_offset": offset, "last_offset": offset + 9}
    return {**BATCH, **place, "base_sequence": offset if sequence is None else sequence, **columns}


def part(offset: int, **columns: Any) -> dict[str, Any]:
    """A batch of a transaction."""
    return batch(offset, transactional=True, **columns)


def marker(offset: int, *, commit: bool, **columns: Any) -> dict[str, Any]:
    sizes = {"records": 1, "batch_records": 1, "last_offset": offset, "base_sequence": None}
    return part(offset, **{**sizes, "control": True, "committed": commit, **columns})


def frame(spark: Any, rows: Any, schema: str) -> Any:
    from aioproducer.spark.audit.small import small_frame

    return small_frame(spark, rows, schema)


def batches(spark: Any, cases: dict[str, Rows]) -> Any:
    """All cases, each a topic with producers of its own."""
    rows = []
    for number, (topic, of_topic) in enumerate(cases.items()):
        for row in of_topic:
            producer_id = None if row["producer_id"] is None else row["producer_id"] + 100 * number
            own = {**row, "topic": topic, "producer_id": producer_id}
            rows.append([own.get(name) for name in NAMES])
    return frame(spark, rows, COLUMNS)


def bounds(spark: Any, places: dict[str, tuple[int, int]]) -> Any:
    """first and end by topic."""
    rows = [(topic, 0, first, end) for topic, (first, end) in places.items()]
    return frame(spark, rows, "topic string, partition int, first long, end long")


def told(findings: Any) -> dict[str, Told]:
    """kind, first offset and records, by topic."""
    found: dict[str, Told] = {}
    for row in findings.collect():
        found.setdefault(row.topic, []).append((Kind(row.kind), row.first_offset, row.records))
    return {topic: sorted(of_topic) for topic, of_topic in found.items()}


def expected(cases: dict[str, Any]) -> dict[str, Told]:
    return {name: sorted(case[-1]) for name, case in cases.items() if case[-1]}


SEQUENCES: dict[str, tuple[int, Rows, Told]] = {
    "in order": (0, [batch(0), batch(10), batch(20)], []),
    "begins anew behind the last": (5, [batch(0, 2**31 - 10), batch(10, 0)], []),
    "begins anew in the midst of a batch": (5, [batch(0, 2**31 - 5), batch(10, 5)], []),
    "a gap behind the last": (5, [batch(0, 2**31 - 10), batch(10, 30)], [(Kind.GAP, 10, 30)]),
    "the log begins, the epoch does not": (0, [batch(0, 40)], [(Kind.GAP, 0, 40)]),
    "the beginning was deleted": (100, [batch(100, 40)], []),
    "swapped": (0, [batch(0), batch(10, 20), batch(20, 10)], [(Kind.REORDERED, 20, 10)]),
    "twice": (0, [batch(0), batch(10), batch(20, 0)], [(Kind.DUPLICATE, 20, 10)]),
    "a new epoch": (0, [batch(0), batch(10, 0, producer_epoch=1)], []),
    "a zombie": (0, [batch(0), batch(10, 0, producer_epoch=1), batch(20, 10)], [(Kind.REORDERED, 20, 10)]),
    "no producer id": (0, [batch(0, producer_id=None, base_sequence=None, producer_epoch=None)], []),
}


def test_sequences(spark: Any) -> None:
    from aioproducer.spark.audit.sequences import wrong_sequences

    made = batches(spark, {name: rows for name, (_, rows, _) in SEQUENCES.items()})
    places = bounds(spark, {name: (first, 0) for name, (first, _, _) in SEQUENCES.items()})
    assert told(wrong_sequences(made, places)) == expected(SEQUENCES)


OFFSETS: dict[str, tuple[Rows, Told]] = {
    "all": ([batch(5), batch(15)], []),
    "the first are not there": ([batch(15)], [(Kind.HOLE, 5, 10)]),
    "the last are not there": ([batch(5)], [(Kind.HOLE, 15, 10)]),
    "none is there": ([], [(Kind.HOLE, 5, 20)]),
    "not within a batch": ([batch(5, records=8), batch(15)], [(Kind.HOLE, 5, 2)]),
    "read twice": ([batch(5, records=20), batch(15)], [(Kind.DUPLICATE, 5, 10)]),
    "overlapping": ([batch(5), batch(12), batch(22, last_offset=24, records=3)], [(Kind.DUPLICATE, 12, 3)]),
}


def test_offsets(spark: Any) -> None:
    from aioproducer.spark.audit.offsets import wrong_offsets

    made = batches(spark, {name: rows for name, (rows, _) in OFFSETS.items()})
    places = bounds(spark, dict.fromkeys(OFFSETS, (5, 25)))
    assert told(wrong_offsets(made, places)) == expected(OFFSETS)


THERE = {"partition": 1}
BOTH_TORN: Told = [(Kind.TORN, 0, 10), (Kind.TORN, 0, 10)]

TRANSACTIONS: dict[str, tuple[Rows, Told]] = {
    "one after another": ([part(0), marker(10, commit=True), part(11), marker(21, commit=False)], []),
    "torn: numbers overlap": (
        [
            part(0, first_counter=1, last_counter=30),
            marker(10, commit=True),
            part(0, first_counter=2, last_counter=29, **THERE),
            marker(10, commit=False, **THERE),
        ],
        BOTH_TORN,
    ),
    "without numbers they may be two": (
        [part(0), marker(10, commit=True), part(0, **THERE), marker(10, commit=False, **THERE)],
        [],
    ),
    "torn: both end the same epoch": (
        [
            part(0),
            marker(10, commit=True, producer_epoch=1),
            part(0, **THERE),
            marker(10, commit=False, producer_epoch=1, **THERE),
        ],
        BOTH_TORN,
    ),
    "one is open for long": ([part(0, last_ms=990_000), part(0, last_ms=900_000, **THERE)], [(Kind.OPEN, 0, 10)]),
    "beside another": ([batch(0), part(10, producer_id=8), marker(20, commit=True, producer_id=8)], []),
}


def test_transactions(spark: Any) -> None:
    from aioproducer.spark.audit.transactions import outcomes, parts, wrong_transactions

    made = batches(spark, {name: rows for name, (rows, _) in TRANSACTIONS.items()})
    assert told(wrong_transactions(parts(outcomes(made)), OPTIONS)) == expected(TRANSACTIONS)


OPEN_AT_10 = [batch(0), part(10, producer_id=8), batch(20)]
ENDED_SINCE = [batch(0), part(10, producer_id=8), batch(20), marker(30, commit=True, producer_id=8)]

READ: dict[str, tuple[Rows, Rows, Told]] = {
    "up to what is open": (OPEN_AT_10, [batch(0)], []),
    "what is open": (OPEN_AT_10, [OPEN_AT_10[1]], [(Kind.ABORTED_READ, 10, 10), (Kind.UNREAD, 0, 10)]),
    "up to what was open, and was committed since": (ENDED_SINCE, [batch(0)], []),
}


def test_a_reader_of_committed_records_stops_at_an_open_transaction(spark: Any) -> None:
    from aioproducer.spark.audit.bounds import Bound, bounds_frame
    from aioproducer.spark.audit.isolation import wrongly_read
    from aioproducer.spark.audit.transactions import outcomes

    made = batches(spark, {name: rows for name, (rows, _, _) in READ.items()})
    given = batches(spark, {name: rows for name, (_, rows, _) in READ.items()})
    places = bounds_frame(spark, [Bound(name, 0, 0, 31, stable_end=10) for name in READ])
    assert told(wrongly_read(outcomes(made), given, places)) == expected(READ)


OBSERVED = (
    "topic string, partition int, offset long, producer_id long, producer_epoch int, sequence int, key binary, "
    "stream string, counter long"
)
EVENT = (
    "event string, stream string, counter long, time_ms long, topic string, partition int, offset long, "
    "outcome string, count long"
)


def observed(spark: Any, streams: dict[str, list[int]]) -> Any:
    """Records with these numbers, from offset 10 on, each stream in a topic of its own."""
    rows = [
        (stream, 0, 10 + place, 7, 0, place, None, stream, counter)
        for stream, counters in streams.items()
        for place, counter in enumerate(counters)
    ]
    return frame(spark, rows, OBSERVED)


def events(spark: Any, streams: dict[str, list[tuple[str, int | None, int | None]]]) -> Any:
    """event, counter and offset, by stream."""
    rows = [
        (event, stream, counter, 900_000, stream, 0, offset, None, None)
        for stream, of_stream in streams.items()
        for event, counter, offset in of_stream
    ]
    return frame(spark, rows, EVENT)


TOLD: dict[str, tuple[list[tuple[str, int | None, int | None]], Told]] = {
    "all there": ([("acked", 1, 10), ("acked", 2, 11)], []),
    "beyond the end": ([("acked", 3, 12)], [(Kind.MISSING, 12, 1)]),
    "deleted since": ([("acked", 3, 9)], []),
    "somewhere, and the beginning was deleted": ([("acked", 3, -1)], []),
    "somewhere": ([("acked", 1, -1)], []),
    "elsewhere": ([("acked", 1, 11)], [(Kind.MISPLACED, 10, 1)]),
    "not ended, nor closed": ([("sent", 3, None)], []),
}


def test_what_was_told(spark: Any) -> None:
    from aioproducer.spark.audit.ledger import doubtful, ledger
    from aioproducer.spark.audit.records import missing_records, wrong_records

    records = observed(spark, {name: [1, 2] for name in TOLD})
    log = events(spark, {name: rows for name, (rows, _) in TOLD.items()})
    written = ledger(records, log, bounds(spark, dict.fromkeys(TOLD, (10, 12))), OPTIONS)
    in_doubt = doubtful(written)
    found = missing_records(in_doubt, log).unionByName(wrong_records(in_doubt, records))
    assert told(found) == expected(TOLD)


@pytest.mark.parametrize("lost", [False, True])
def test_what_never_ended_is_found_unless_its_end_may_be_lost(spark: Any, lost: bool) -> None:
    from aioproducer.spark.audit.ledger import doubtful, ledger
    from aioproducer.spark.audit.records import missing_records

    more: list[tuple[str, int | None, int | None]] = [("lost", None, None)] if lost else []
    log = events(spark, {"s": [("sent", 3, None), ("close", None, None), *more]})
    written = ledger(observed(spark, {"s": [1]}), log, bounds(spark, {"s": (0, 1)}), OPTIONS)
    found = [(row.kind, row.stream, row.first_counter) for row in missing_records(doubtful(written), log).collect()]
    assert found == ([] if lost else [(Kind.UNENDED, "s", 3)])


def test_numbers_that_are_nowhere_are_a_gap_of_streams_without_a_log(spark: Any) -> None:
    from aioproducer.spark.audit.ledger import ledger
    from aioproducer.spark.audit.records import missing_numbers
    from aioproducer.spark.audit.spans import spans

    log = events(spark, {"logged": [("open", None, None)]})
    records = observed(spark, {"s": [2, 3, 7, 4100, 12288], "logged": [5]})
    written = ledger(records, log, bounds(spark, {"s": (10, 13)}), OPTIONS)
    by_span = spans(written)
    rows = missing_numbers(by_span, written, log, OPTIONS).collect()
    found = [(row.stream, row.first_counter, row.last_counter) for row in rows]
    assert sorted(found) == [("s", 1, 1), ("s", 4, 6), ("s", 8, 4099), ("s", 4101, 12287)]
    assert missing_numbers(by_span, written, log, AuditOptions(now_ms=0, partial=True)).collect() == []


ORDERS: dict[str, tuple[list[list[int]], list[int]]] = {
    "one after the other": ([[1, 2, 3], [4, 5]], []),
    "with numbers that went elsewhere": ([[1, 5], [8, 20], [21]], []),
    "swapped within a batch": ([[1, 3, 2, 4]], [2]),
    "swapped batches": ([[3, 4], [1, 2], [5]], [1, 2]),
    "one of a later batch is late": ([[1, 2, 6], [3, 7], [8]], [3]),
    "late for a batch long before": ([[9], [1], [2], [10, 3, 11]], [1, 2, 3]),
}
"""The numbers in each batch, and those that stand behind a higher one."""


def test_order_is_judged_by_slices_and_looked_up_where_they_leave_a_doubt(spark: Any) -> None:
    from aioproducer.spark.audit.order import wrong_order
    from aioproducer.spark.audit.slices import SLICE

    rows, sliced = [], []
    for topic, (given, _) in ORDERS.items():
        offset = 0
        for numbers in given:
            begin = offset
            for number in numbers:
                rows.append((topic, 0, begin, offset, "s", number, 7, 0, None))
                offset += 1
            in_order = all(number - at == numbers[0] for at, number in enumerate(numbers))
            sliced.append((topic, 0, begin, "s", begin, min(numbers), max(numbers), in_order))
    of_records = "stream string, counter long, producer_id long, producer_epoch int, key binary"
    records = frame(spark, rows, f"topic string, partition int, batch_offset long, offset long, {of_records}")
    columns = "first_offset long, first_counter long, last_counter long, in_order boolean"
    all_slices = frame(spark, sliced, f"topic string, partition int, batch_offset long, stream string, {columns}")
    assert list(SLICE) == all_slices.columns[:4]
    nothing = frame(spark, [], "stream string, counter long")
    found: dict[str, list[int]] = {}
    for row in wrong_order(all_slices, records, nothing).collect():
        found.setdefault(row.topic, []).append(row.first_counter)
    assert {topic: sorted(of_topic) for topic, of_topic in found.items()} == {
        topic: late for topic, (_, late) in ORDERS.items() if late
    }


@pytest.mark.parametrize("most", [0, 1, 100])
def test_many_keys_are_looked_up_as_few_are(spark: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    from aioproducer.spark.audit import matching

    monkeypatch.setattr(matching, "MOST_SENT", most)
    rows = frame(spark, [(number, number * 10) for number in range(9)], "id long, value long")
    wanted = frame(spark, [(3, "x"), (5, "y"), (77, "z")], "id long, why string")
    joined = matching.matching(rows, wanted, ["id"])
    assert sorted(map(tuple, joined.collect())) == [(3, 30, "x"), (5, 50, "y")]
    plan = joined._jdf.queryExecution().optimizedPlan().toString()
    assert ("strategy=broadcast" in plan) == (most >= 3)
    nothing = matching.matching(rows, wanted.limit(0), ["id"])
    assert nothing.columns == joined.columns
    assert nothing.collect() == []


def test_lines_that_are_no_events(spark: Any, tmp_path: Any) -> None:
    from aioproducer.spark.audit.events import events_of_files, incomplete_logs

    lines = (
        '{"schema":1,"event":"open","stream":"s","time_ms":1}',
        "",
        '{"schema":1,"event":"lost","count":5}',
        '{"sch',
    )
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    found = events_of_files(spark, [str(tmp_path / "log.jsonl")])
    assert sorted(row.event for row in found.collect()) == ["lost", "open", "torn"]
    (row,) = incomplete_logs(found).collect()
    assert (row.records, row.what) == (6, "5 lines were lost, 1 broke off")


def test_latencies_are_exact(spark: Any) -> None:
    from aioproducer.spark.audit.latencies import latencies

    rows = [("t", True, 60_000, 60_000 + took) for took in range(1, 101)] + [("t", True, 120_000, 123_451)]
    made = frame(spark, rows, "topic string, appended boolean, sent_ms long, timestamp_ms long")
    found = sorted((row.asDict() for row in latencies(made, None).collect()), key=lambda row: row["minute_ms"])
    common = {"topic": "t", "what": "appended"}
    assert found == [
        {**common, "minute_ms": 60_000, "records": 100, "p50": 50, "p95": 95, "p99": 99, "p100": 100},
        {**common, "minute_ms": 120_000, "records": 1, "p50": 3460, "p95": 3460, "p99": 3460, "p100": 3460},
    ]
