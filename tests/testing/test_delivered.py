from __future__ import annotations

from dataclasses import replace

import pytest

from aioproducer.record_metadata import RecordMetadata
from aioproducer.testing.delivered import assert_delivered, delivery_problems
from aioproducer.testing.kafka.kafka_output import ConsumedRecord
from aioproducer.types import ProducerRecord, TimestampType


def sent(value: bytes | None, key: bytes | None = None, **fields: int) -> ProducerRecord:
    return ProducerRecord("t", value, key, fields.get("partition"), fields.get("timestamp_ms"), [("h", b"1")])


def found(partition: int, offset: int, value: bytes | None, key: bytes | None = None) -> ConsumedRecord:
    return ConsumedRecord("t", partition, offset, 5, TimestampType.CREATE_TIME, key, value, (("h", b"1"),))


SENT = [sent(b"1", b"a"), sent(b"2", b"b"), sent(b"3", b"a"), sent(None, b"b"), sent(b"1", b"a")]
FOUND = [
    found(1, 0, b"2", b"b"),
    found(0, 0, b"1", b"a"),
    found(0, 1, b"3", b"a"),
    found(1, 1, None, b"b"),
    found(0, 2, b"1", b"a"),
]


def problems(sent: list[ProducerRecord], found: list[ConsumedRecord], **options: int) -> list[str]:
    first, gaps = options.get("first_offset", 0), bool(options.get("gaps"))
    return list(delivery_problems(sent, found, first_offset=first, gaps=gaps))


def test_all_is_well() -> None:
    assert problems(SENT, FOUND) == []
    assert_delivered(SENT, FOUND)


def test_a_lost_record() -> None:
    lost, hole = problems(SENT, FOUND[:2] + FOUND[3:])
    assert lost == "lost: ('t', b'a', b'3', (('h', b'1'),)) was sent 1 times and is there 0 times"
    assert hole == "offsets of t-0: 2 follows 0"


def test_a_duplicate() -> None:
    assert problems(SENT, [*FOUND, found(1, 2, None, b"b")]) == [
        "duplicated: ('t', b'b', None, (('h', b'1'),)) was sent 1 times and is there 2 times"
    ]


def test_a_record_of_somebody_else() -> None:
    assert problems(SENT, [*FOUND, found(1, 2, b"", b"b")]) == ["never sent: ('t', b'b', b'', (('h', b'1'),))"]


def test_the_wrong_order() -> None:
    swapped = [found(0, 0, b"3", b"a"), found(0, 1, b"1", b"a"), FOUND[0], FOUND[3], FOUND[4]]
    assert problems(SENT, swapped) == ["order: t-0@1 was sent as number 0, after number 2 in its partition"]


def test_a_key_in_two_partitions() -> None:
    assert problems(SENT[:3], [found(0, 0, b"1", b"a"), found(1, 0, b"2", b"b"), found(1, 1, b"3", b"a")]) == [
        "key b'a' of t is in partitions [0, 1]"
    ]


def test_a_chosen_partition_goes_before_the_key() -> None:
    chosen = [sent(b"1", b"a", partition=0), sent(b"2", b"a", partition=1)]
    assert problems(chosen, [found(0, 0, b"1", b"a"), found(1, 0, b"2", b"a")]) == []
    assert problems(chosen, [found(0, 0, b"1", b"a"), found(0, 1, b"2", b"a")]) == [
        "partition: t-0@1 was sent to partition 1"
    ]


def test_equal_records_in_several_partitions_are_not_ordered() -> None:
    assert (
        problems([sent(b"1"), sent(b"2"), sent(b"1")], [found(0, 0, b"2"), found(0, 1, b"1"), found(1, 0, b"1")]) == []
    )


def test_a_chosen_timestamp() -> None:
    assert problems([sent(b"1", timestamp_ms=5)], [found(0, 0, b"1")]) == []
    assert problems([sent(b"1", timestamp_ms=6)], [found(0, 0, b"1")]) == ["timestamp: t-0@0 has 5 and was sent with 6"]
    appended = replace(found(0, 0, b"1"), timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert problems([sent(b"1", timestamp_ms=6)], [appended]) == []


def test_offsets_begin_where_the_log_did() -> None:
    assert problems([sent(b"1")], [found(0, 7, b"1")], first_offset=7) == []
    assert problems([sent(b"1")], [found(0, 7, b"1")]) == ["offsets of t-0: 7 follows -1"]


def test_transactions_leave_gaps() -> None:
    two = [sent(b"1"), sent(b"2")]
    assert problems(two, [found(0, 1, b"1"), found(0, 5, b"2")], gaps=True) == []
    assert problems(two, [found(0, 1, b"1"), found(0, 1, b"2")], gaps=True) == ["offsets of t-0: 1 follows 1"]


@pytest.mark.parametrize(
    ("reported", "problem"),
    [
        (RecordMetadata("t", 0, 0, 5, False, -1, 1), None),
        (RecordMetadata("t", 0, -1, 5, False, -1, 1), None),
        (RecordMetadata("t", 0, 3, 5, False, -1, 1), r"nothing is at t-0@3, where \('t', None, b'1'"),
        (RecordMetadata("t", 0, 1, 5, False, -1, 1), r"at t-0@1 is \('t', None, b'2'.*\) instead of \('t', None, b'1'"),
        (RecordMetadata("t", 0, 0, 6, True, -1, 1), "t-0@0 has CREATE_TIME 5, not LOG_APPEND_TIME 6"),
    ],
)
def test_metadata(reported: RecordMetadata, problem: str | None) -> None:
    two, read = [sent(b"1"), sent(b"2")], [found(0, 0, b"1"), found(0, 1, b"2")]
    metadata = [reported, RecordMetadata("t", 0, 1, 5, False, -1, 1)]
    if problem is None:
        assert_delivered(two, read, metadata=metadata)
    else:
        with pytest.raises(AssertionError, match=problem):
            assert_delivered(two, read, metadata=metadata)


def test_only_the_first_problems_are_shown() -> None:
    with pytest.raises(AssertionError, match=r"(lost.*\n){10}… and 3 more$"):
        assert_delivered([sent(b"%d" % n) for n in range(13)], [])
