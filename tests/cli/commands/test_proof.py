from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.cli.commands.proof import Proof, digest

RECORDS = [(b"k%d" % (number % 3), b"value %d" % number) for number in range(20)]


def proof_of(
    sent: Sequence[tuple[bytes | None, bytes]],
    read: Sequence[tuple[bytes | None, bytes]],
    *,
    offsets: list[int] | None = None,
) -> Proof:
    """Partition 4 was sent the one and read the other."""
    proof = Proof()
    for offset, record in enumerate(sent):
        proof.add_sent(4, digest(*record), offset)
    for offset, record in zip(offsets or range(len(read)), read, strict=True):
        proof.add_read(4, offset, *record)
    return proof


def test_records_sent_and_read_are_proven() -> None:
    proof = proof_of(RECORDS, RECORDS)
    assert proof.differences() == []
    assert (proof.sent_count, proof.read_count, proof.key_count) == (20, 20, 3)


def test_nothing_sent_and_nothing_read_is_proven() -> None:
    assert Proof().differences() == []


@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_missing_record(at: int) -> None:
    assert proof_of(RECORDS, RECORDS[:at] + RECORDS[at + 1 :]).differences() == [
        "20 records were sent and 19 read",
        f"partition 4: 1 record is missing, first number {at} of those sent",
    ]


@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_doubled_record(at: int) -> None:
    assert proof_of(RECORDS, [*RECORDS[: at + 1], *RECORDS[at:]]).differences() == [
        "20 records were sent and 21 read",
        f"partition 4: 1 record is in the log more often than sent, first at offset {at + 1}",
    ]


def test_a_record_doubled_much_later() -> None:
    assert proof_of(RECORDS, [*RECORDS, RECORDS[2]]).differences() == [
        "20 records were sent and 21 read",
        "partition 4: 1 record is in the log more often than sent, first at offset 20",
    ]


@pytest.mark.parametrize("at", [0, 7, 19])
@pytest.mark.parametrize("changed", [(b"k0", b"another value"), (None, b"value 7"), (b"another key", b"value 7")])
def test_a_changed_record(at: int, changed: tuple[bytes | None, bytes]) -> None:
    assert proof_of(RECORDS, [*RECORDS[:at], changed, *RECORDS[at + 1 :]]).differences() == [
        f"partition 4: 1 record is missing, first number {at} of those sent",
        f"partition 4: 1 record is in the log but never sent, first at offset {at}",
    ]


@pytest.mark.parametrize("at", [0, 7, 18])
def test_swapped_records(at: int) -> None:
    swapped = [*RECORDS[:at], RECORDS[at + 1], RECORDS[at], *RECORDS[at + 2 :]]
    assert proof_of(RECORDS, swapped).differences() == [
        f"partition 4: 2 records are not in the order of sending, first at offset {at}"
    ]


def test_swapped_and_missing() -> None:
    assert proof_of(RECORDS, [RECORDS[1], RECORDS[0], *RECORDS[3:]]).differences() == [
        "20 records were sent and 19 read",
        "partition 4: 1 record is missing, first number 2 of those sent",
        "partition 4: 2 records are not in the order of sending, first at offset 0",
    ]


def test_a_hole_in_the_offsets() -> None:
    offsets = [*range(10), *range(11, 21)]
    assert proof_of(RECORDS, RECORDS, offsets=offsets).differences() == [
        "partition 4: offsets are not contiguous: 11 was read where 10 was expected"
    ]


def test_a_log_that_begins_late() -> None:
    assert proof_of(RECORDS, RECORDS, offsets=list(range(5, 25))).differences() == [
        "partition 4: offsets are not contiguous: 5 was read where 0 was expected"
    ]


def test_an_acknowledgement_out_of_order() -> None:
    proof = Proof()
    for number, offset in enumerate([0, 2, 1]):
        proof.add_sent(0, digest(*RECORDS[number]), offset)
    for offset, number in enumerate([0, 2, 1]):
        proof.add_read(0, offset, *RECORDS[number])
    assert proof.differences() == [
        "partition 0: 2 records are acknowledged at another offset than its place in the order of sending, first "
        "number 1 at offset 2",
        "partition 0: 2 records are not in the order of sending, first at offset 1",
    ]


def test_an_offset_that_the_broker_did_not_say_proves_nothing() -> None:
    proof = Proof()
    proof.add_sent(0, digest(*RECORDS[0]), -1)
    proof.add_read(0, 0, *RECORDS[0])
    assert proof.differences() == []


def test_a_record_in_another_partition() -> None:
    proof = Proof()
    for offset, record in enumerate(RECORDS[:2]):
        proof.add_sent(0, digest(*record), offset)
    proof.add_read(0, 0, *RECORDS[0])
    proof.add_read(1, 0, *RECORDS[1])
    assert proof.differences() == [
        "partition 0: 1 record is missing, first number 1 of those sent",
        "partition 1: 1 record is in the log but never sent, first at offset 0",
    ]


def test_a_key_in_two_partitions() -> None:
    proof = Proof()
    for partition in (0, 1):
        proof.add_sent(partition, digest(b"k", b"%d" % partition), 0)
        proof.add_read(partition, 0, b"k", b"%d" % partition)
    assert proof.differences() == ["1 keys are in several partitions, b'k' for one"]


def test_of_equal_records_only_the_number_counts() -> None:
    same = [(None, b"x")] * 5
    assert proof_of(list(same), list(same)).differences() == []
    assert proof_of(list(same), list(same[:4])).differences() == [
        "5 records were sent and 4 read",
        "partition 4: 1 record is missing, first number 4 of those sent",
    ]


def test_content_cannot_pass_for_other_content() -> None:
    contents = [
        (None, b""),
        (b"", b""),
        (None, None),
        (b"a", b"b"),
        (b"ab", b""),
        (b"", b"ab"),
        (None, b"ab"),
        (b"-", b""),
    ]
    assert len({digest(*content) for content in contents}) == len(contents)


@given(st.lists(st.binary(max_size=2), max_size=8), st.lists(st.binary(max_size=2), max_size=8))
def test_there_is_a_difference_exactly_if_there_is_one(sent: list[bytes], read: list[bytes]) -> None:
    proof = proof_of([(None, value) for value in sent], [(None, value) for value in read])
    assert (proof.differences() == []) == (sent == read)
