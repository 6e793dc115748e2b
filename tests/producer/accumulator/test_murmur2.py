from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.murmur2 import murmur2, murmur2_of, partition_for_key, partition_for_key_of

# Printed by org.apache.kafka.common.utils.Utils.murmur2 of kafka-clients 4.3.1; the first six are in its own UtilsTest.
KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
    b"": 275646681,
    "\0ÿ".encode(): -1951946001,
    **{
        bytes(range(256))[:length]: hashed
        for length, hashed in {
            1: 375494588,
            2: -2112343979,
            3: 51419311,
            4: 1916244640,
            5: -1916494074,
            6: 1749926848,
            7: -1488168820,
            8: 970650281,
            9: 1671170726,
            70: 267250342,
            131: 1752894549,
            192: -2050583700,
            253: -996188436,
            256: -1948347274,
        }.items()
    },
}


@pytest.mark.parametrize(("key", "hashed"), KAFKA.items())
def test_hashes_as_kafka_does(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        (b"21", 3),
        (b"foobar", 0),
        (b"a-little-bit-long-string", 1),
        (b"a-little-bit-longer-string", 0),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 3),
        (b"", 2),
        (b"abc", 4),
    ],
)
def test_puts_a_key_where_kafka_puts_it_among_seven_partitions(key: bytes, partition: int) -> None:
    assert partition_for_key(key, 7) == partition


@given(key=st.binary(max_size=40), partitions=st.integers(1, 10_000))
def test_every_key_has_one_partition(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions) < partitions
    assert partition_for_key(key, partitions) == partition_for_key(bytes(bytearray(key)), partitions)
    assert partition_for_key(key, 1) == 0


@given(st.binary(max_size=60), st.data())
def test_a_key_within_other_bytes(data: bytes, draws: Any) -> None:
    begin = draws.draw(st.integers(0, len(data)))
    size = draws.draw(st.integers(0, len(data) - begin))
    assert murmur2_of(data, begin, size) == murmur2(data[begin : begin + size])
    assert partition_for_key_of(data, begin, size, 7) == partition_for_key(data[begin : begin + size], 7)
