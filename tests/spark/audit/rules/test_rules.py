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
Found = list[tuple[Kind, int | None, int]]


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
    from aioproducer.spark.audit.frames.local_frame import local_frame

    return local_frame(spark, rows, schema)


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


def found_in(findings: Any) -> dict[str, Found]:
    """kind, first offset and records, by topic."""
    found: dict[str, Found] = {}
    for row in findings.collect():
        found.setdefault(row.topic, []).append((Kind(row.kind), row.first_offset, row.records))
    return {topic: sorted(of_topic) for topic, of_topic in found.items()}


def expected(cases: dict[str, Any]) -> dict[str, Found]:
    return {name: sorted(case[-1]) for name, case in cases.items() if case[-1]}


SEQUENCES: dict[str, tuple[int, Rows, Found]] = {
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
    from aioproducer.spark.audit.rules.sequences import wrong_sequences

    made = batches(spark, {name: rows for name, (_, rows, _) in SEQUENCES.items()})
    places = bounds(spark, {name: (first, 0) for name, (first, _, _) in SEQUENCES.items()})
    assert found_in(wrong_sequences(made, places)) == expected(SEQUENCES)


OFFSETS: dict[str, tuple[Rows, Found]] = {
    "all": ([batch(5), batch(15)], []),
    "the first are not there": ([batch(15)], [(Kind.HOLE, 5, 10)]),
    "the last are not there": ([batch(5)], [(Kind.HOLE, 15, 10)]),
    "none is there": ([], [(Kind.HOLE, 5, 20)]),
    "not within a batch": ([batch(5, records=8), batch(15)], [(Kind.HOLE, 5, 2)]),
    "read twice": ([batch(5, records=20), batch(15)], [(Kind.DUPLICATE, 5, 10)]),
    "overlapping": ([batch(5), batch(12), batch(22, last_offset=24, records=3)], [(Kind.DUPLICATE, 12, 3)]),
}


def test_offsets(spark: Any) -> None:
    from aioproducer.spark.audit.rules.offsets import wrong_offsets

    made = batches(spark, {name: rows for name, (rows, _) in OFFSETS.items()})
    places = bounds(spark, dict.fromkeys(OFFSETS, (5, 25)))
    assert found_in(wrong_offsets(made, places)) == expected(OFFSETS)


THERE = {"partition": 1}
BOTH_TORN: Found = [(Kind.TORN, 0, 10), (Kind.TORN, 0, 10)]

TRANSACTIONS: dict[str, tuple[Rows, Found]] = {
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
    from aioproducer.spark.audit.rules.transactions import outcomes, parts, wrong_transactions

    made = batches(spark, {name: rows for name, (rows, _) in TRANSACTIONS.items()})
    assert found_in(wrong_transactions(parts(outcomes(made)), OPTIONS)) == expected(TRANSACTIONS)


OPEN_AT_10 = [batch(0), part(10, producer_id=8), batch(20)]
ENDED_SINCE = [batch(0), part(10, producer_id=8), batch(20), marker(30, commit=True, producer_id=8)]

READ: dict[str, tuple[Rows, Rows, Found]] = {
    "up to what is open": (OPEN_AT_10, [batch(0)], []),
    "what is open": (OPEN_AT_10, [OPEN_AT_10[1]], [(Kind.ABORTED_READ, 10, 10), (Kind.UNREAD, 0, 10)]),
    "up to what was open, and was committed since": (ENDED_SINCE, [batch(0)], []),
}


def test_a_reader_of_committed_records_stops_at_an_open_transaction(spark: Any) -> None:
    from aioproducer.spark.audit.frames.bounds import Bound, bounds_frame
    from aioproducer.spark.audit.rules.isolation import wrongly_read
    from aioproducer.spark.audit.rules.transactions import outcomes

    made = batches(spark, {name: rows for name, (rows, _, _) in READ.items()})
    given = batches(spark, {name: rows for name, (_, rows, _) in READ.items()}).selectExpr(
        "topic", "partition", "batch_offset", "records AS given"
    )
    places = bounds_frame(spark, [Bound(name, 0, 0, 31, stable_end=10) for name in READ])
    assert found_in(wrongly_read(outcomes(made), given, places)) == expected(READ)


OBSERVED = (
    "topic string, partition int, offset long, producer_id long, producer_epoch int, sequence int, key binary, "
    "stream string, counter long, batch_offset long, batch_records int, batch_bytes int, transactional boolean, "
    "control boolean, committed boolean, timestamp_ms long"
)
Log = list[tuple[str, int | None, int | None]]
EVENT = (
    "event string, stream string, counter long, time_ms long, sent_ms long, topic string, partition int, offset long, "
    "outcome string, count long"
)


def observed(spark: Any, streams: dict[str, list[int]]) -> Any:
    """Records with these numbers, from offset 10 on, each stream in a topic of its own."""
    rows = [
        (stream, 0, 10 + place, 7, 0, place, None, stream, counter, 10, len(counters), 500, False, False, None, 0)
        for stream, counters in streams.items()
        for place, counter in enumerate(counters)
    ]
    return frame(spark, rows, OBSERVED)


EVENT_COLUMNS = [field.split()[0] for field in EVENT.split(", ")]
OUTCOMES = ("not_sent", "unknown")
"""Of the event ``failed``."""


def events(spark: Any, streams: dict[str, Log]) -> Any:
    """event or outcome, counter and offset, by stream."""
    rows = [
        (
            *("failed" if event in OUTCOMES else event, stream, counter, 900_000, None),
            *(stream, 0, offset, event if event in OUTCOMES else None, None),
        )
        for stream, of_stream in streams.items()
        for event, counter, offset in of_stream
    ]
    return frame(spark, rows, EVENT)


def judged(records: Any, log: Any, places: Any) -> tuple[Any, Any]:
    """The ledger and the spans, as an audit makes them."""
    from aioproducer.spark.audit.frames.ledger import ledger
    from aioproducer.spark.audit.frames.pieces import SPAN, pieces
    from aioproducer.spark.audit.frames.slices import slices
    from aioproducer.spark.audit.frames.spans import compared, spans
    from aioproducer.spark.audit.frames.suspects import suspects
    from aioproducer.spark.audit.rules.order import disordered

    there = pieces(records)
    found = compared(there, log, places, OPTIONS.now_ms)
    not_in_order = found.where("NOT in_order").select(*SPAN)
    looked_up = suspects(records, not_in_order, disordered(slices(there)))
    written = ledger(looked_up, log, places, not_in_order, OPTIONS.now_ms)
    return written, spans(found, written)


LOGGED: dict[str, tuple[Log, Found]] = {
    "all there": ([("acked", 1, 10), ("acked", 2, 11)], []),
    "beyond the end": ([("acked", 3, 12)], [(Kind.MISSING, 12, 1)]),
    "deleted since": ([("acked", 3, 9)], []),
    "somewhere, and the beginning was deleted": ([("acked", 3, -1)], []),
    "somewhere": ([("acked", 1, -1)], []),
    "elsewhere": ([("acked", 1, 11)], [(Kind.MISPLACED, 10, 1)]),
    "not ended, nor closed": ([("sent", 3, None)], []),
}


def test_missing_and_wrong_records_are_found_from_the_log(spark: Any) -> None:
    from aioproducer.spark.audit.frames.ledger import doubtful
    from aioproducer.spark.audit.rules.records import missing_records, wrong_records

    records = observed(spark, {name: [1, 2] for name in LOGGED})
    log = events(spark, {name: rows for name, (rows, _) in LOGGED.items()})
    in_doubt = doubtful(judged(records, log, bounds(spark, dict.fromkeys(LOGGED, (10, 12))))[0])
    found = missing_records(in_doubt, log).unionByName(wrong_records(in_doubt, records))
    assert found_in(found) == expected(LOGGED)


@pytest.mark.parametrize("lost", [False, True])
def test_a_record_without_an_end_is_found_unless_its_end_may_be_lost(spark: Any, lost: bool) -> None:
    from aioproducer.spark.audit.frames.ledger import doubtful
    from aioproducer.spark.audit.rules.records import missing_records

    more: Log = [("lost", None, None)] if lost else []
    log = events(spark, {"s": [("sent", 3, None), ("close", None, None), *more]})
    written, _ = judged(observed(spark, {"s": [1]}), log, bounds(spark, {"s": (0, 1)}))
    found = [(row.kind, row.stream, row.first_counter) for row in missing_records(doubtful(written), log).collect()]
    assert found == ([] if lost else [(Kind.UNENDED, "s", 3)])


def test_numbers_that_are_nowhere_are_a_gap_of_streams_without_a_log(spark: Any) -> None:
    from aioproducer.spark.audit.rules.records import missing_numbers

    log = events(spark, {"logged": [("open", None, None)]})
    records = observed(spark, {"s": [2, 3, 7, 4100, 12288], "logged": [5]})
    written, by_span = judged(records, log, bounds(spark, {"s": (10, 13)}))
    rows = missing_numbers(by_span, written, log, OPTIONS).collect()
    found = [(row.stream, row.first_counter, row.last_counter) for row in rows]
    assert sorted(found) == [("s", 1, 1), ("s", 4, 6), ("s", 8, 4099), ("s", 4101, 12287)]
    assert missing_numbers(by_span, written, log, AuditOptions(now_ms=0, partial=True)).collect() == []


WHOLE: Log = [("sent", 1, None), ("acked", 1, 10), ("sent", 2, None), ("acked", 2, 11)]
NOT_SENT: Log = [("sent", 3, None), ("not_sent", 3, None)]

SPANS: dict[str, tuple[list[int], Log, bool]] = {
    "as logged": ([1, 2], WHOLE, True),
    "one was not sent": ([1, 2], [*WHOLE, *NOT_SENT], True),
    "one failed, and may be there": ([1, 2], [*WHOLE, ("sent", 3, None), ("unknown", 3, None)], True),
    "one was deleted since": ([2], [("sent", 1, None), ("acked", 1, 9), ("sent", 2, None), ("acked", 2, 10)], True),
    "no log": ([1, 2, 3], [], True),
    "no log, and a gap": ([1, 3], [], False),
    "no log, and one twice": ([1, 1, 3], [], False),
    "two are there twice, two are not": ([1, 1, 4, 4], [], False),
    "one twice": ([1, 2, 2], WHOLE, False),
    "one is missing": ([1], WHOLE, False),
    "another one is there": ([1, 3], WHOLE, False),
    "at the places of each other": ([2, 1], WHOLE, False),
    "one was not sent, and is there": ([1, 2, 3], [*WHOLE, *NOT_SENT], False),
    "one failed, and is there": ([1, 2, 3], [*WHOLE, ("sent", 3, None), ("unknown", 3, None)], False),
    "one never ended": ([1, 2], [*WHOLE, ("sent", 3, None)], False),
    "one ended twice, another never": ([1, 2], [*WHOLE, *NOT_SENT, ("not_sent", 3, None), ("sent", 4, None)], False),
    "one was not logged as sent": ([1, 2], WHOLE[1:], False),
    "a log that is given twice": ([1, 2], [*WHOLE, *WHOLE], False),
}
"""The numbers that are there from offset 10 on, what the log says, and whether that is as it should be."""


def test_a_span_is_in_order_only_if_each_record_is(spark: Any) -> None:
    from aioproducer.spark.audit.frames.pieces import pieces
    from aioproducer.spark.audit.frames.spans import compared

    records = observed(spark, {name: numbers for name, (numbers, _, _) in SPANS.items()})
    log = events(spark, {name: rows for name, (_, rows, _) in SPANS.items()})
    places = bounds(spark, dict.fromkeys(SPANS, (10, 20)))
    found = {row.stream: row.in_order for row in compared(pieces(records), log, places, OPTIONS.now_ms).collect()}
    assert found == {name: in_order for name, (_, _, in_order) in SPANS.items()}


def test_numbers_in_topics_that_are_not_audited_leave_no_doubt(spark: Any) -> None:
    from aioproducer.spark.audit.frames.pieces import pieces
    from aioproducer.spark.audit.frames.spans import compared

    log = events(spark, {"s": WHOLE}).unionByName(
        events(spark, {"s": [("sent", 3, None), ("acked", 3, 0)]}).selectExpr(
            *(name for name in EVENT_COLUMNS if name != "topic"), "'other' AS topic"
        )
    )
    there = pieces(observed(spark, {"s": [1, 2]}))
    (row,) = compared(there, log, bounds(spark, {"s": (10, 12)}), OPTIONS.now_ms).collect()
    assert (row.span, row.copies, row.acknowledged, row.logged, row.in_order) == (0, 2, 2, True, True)


OWN = ("mine", b"7")
STAMPED = [("aioproducer.stream", b"s"), ("aioproducer.counter", b"5"), ("aioproducer.sent", b"900")]

STAMPS: dict[str, tuple[list[tuple[str, bytes]] | None, tuple[str | None, int | None, int | None]]] = {
    "none": (None, (None, None, None)),
    "other headers": ([OWN], (None, None, None)),
    "alone": (STAMPED, ("s", 5, 900)),
    "behind others": ([OWN, *STAMPED], ("s", 5, 900)),
    "before others": ([*STAMPED, OWN], ("s", 5, 900)),
    "in another order": ([*STAMPED[::-1], OWN], ("s", 5, 900)),
    "behind those of another sending": ([("aioproducer.counter", b"1"), OWN, *STAMPED], ("s", 5, 900)),
    "with another number behind": ([*STAMPED, ("aioproducer.counter", b"6")], ("s", 6, 900)),
    "one was removed": (STAMPED[:2], ("s", 5, None)),
    "not a number": ([STAMPED[0], ("aioproducer.counter", b"x"), STAMPED[2]], ("s", None, 900)),
}


def test_stamps_are_found_wherever_they_stand(spark: Any) -> None:
    from aioproducer.spark.audit.frames.observations import observe, source_schema

    batches: Any = source_schema(values=False)["batch"].dataType
    batch = dict.fromkeys(batches.names) | {"control": False}
    rows = [(name, 0, 1, None, 0, None, headers, tuple(batch.values())) for name, (headers, _) in STAMPS.items()]
    source = spark.createDataFrame(rows, source_schema(values=False))
    found = {row.topic: (row.stream, row.counter, row.sent_ms) for row in observe(source).collect()}
    assert found == {name: stamps for name, (_, stamps) in STAMPS.items()}


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
    from aioproducer.spark.audit.frames.pieces import SLICE, SPAN
    from aioproducer.spark.audit.frames.suspects import suspects
    from aioproducer.spark.audit.rules.order import disordered, wrong_order

    rows, sliced = [], []
    for topic, (given, _) in ORDERS.items():
        offset = 0
        for numbers in given:
            begin = offset
            for number in numbers:
                rows.append((topic, 0, begin, offset, "s", number, 7, 0, None, None))
                offset += 1
            in_order = all(number - at == numbers[0] for at, number in enumerate(numbers))
            sliced.append((topic, 0, begin, "s", begin, min(numbers), max(numbers), in_order))
    of_records = "stream string, counter long, producer_id long, producer_epoch int, sequence int, key binary"
    records = frame(spark, rows, f"topic string, partition int, batch_offset long, offset long, {of_records}")
    columns = "first_offset long, first_counter long, last_counter long, in_order boolean"
    all_slices = frame(spark, sliced, f"topic string, partition int, batch_offset long, stream string, {columns}")
    assert list(SLICE) == all_slices.columns[:4]
    nothing = frame(spark, [], "stream string, counter long")
    found: dict[str, list[int]] = {}
    no_spans = frame(spark, [], "stream string, span long")
    assert list(SPAN) == no_spans.columns
    looked_up = suspects(records, no_spans, disordered(all_slices))
    for row in wrong_order(looked_up, nothing).collect():
        found.setdefault(row.topic, []).append(row.first_counter)
    assert {topic: sorted(of_topic) for topic, of_topic in found.items()} == {
        topic: late for topic, (_, late) in ORDERS.items() if late
    }


@pytest.mark.parametrize("most", [0, 1, 100])
def test_many_keys_are_looked_up_as_few_are(spark: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    from aioproducer.spark.audit.frames import matching

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
    from aioproducer.spark.audit.frames.events import events_of_files
    from aioproducer.spark.audit.rules.incomplete_logs import incomplete_logs

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
    from aioproducer.spark.audit.frames.counts import counts
    from aioproducer.spark.audit.rules.latencies import latencies

    rows = [("t", True, 60_000, 60_000 + took) for took in range(1, 101)] + [("t", True, 120_000, 123_451)]
    made = frame(spark, rows, "topic string, appended boolean, sent_ms long, timestamp_ms long")
    made = made.selectExpr("*", "0 AS partition", "CAST(NULL AS BINARY) AS key")
    found = sorted((row.asDict() for row in latencies(counts(made)).collect()), key=lambda row: row["minute_ms"])
    common = {"topic": "t", "what": "appended"}
    assert found == [
        {**common, "minute_ms": 60_000, "records": 100, "p50": 50, "p95": 95, "p99": 99, "p100": 100},
        {**common, "minute_ms": 120_000, "records": 1, "p50": 3460, "p95": 3460, "p99": 3460, "p100": 3460},
    ]
