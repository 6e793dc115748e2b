from __future__ import annotations

import pytest

from aioproducer.producer.transactions.protocol import NEWEST_OF_THE_FIRST, TransactionProtocol
from aioproducer.protocol.api_key import ApiKey


def test_the_first_is_spoken_until_more_is_known() -> None:
    protocol = TransactionProtocol()
    assert not protocol.follow(None)
    assert not protocol.second
    assert {api: protocol.newest(api) for api in NEWEST_OF_THE_FIRST} == NEWEST_OF_THE_FIRST
    assert protocol.newest(ApiKey.INIT_PRODUCER_ID) is None


def test_the_second_knows_no_oldest_version_to_stop_at() -> None:
    protocol = TransactionProtocol()
    protocol.follow(2)
    assert {protocol.newest(api) for api in NEWEST_OF_THE_FIRST} == {None}


@pytest.mark.parametrize(
    ("finalized", "another_epoch"),
    [
        ([0, 1], [False, False]),
        ([1, 2], [False, True]),
        ([2, 2, 3], [True, False, False]),
        ([2, 1, 2], [True, False, True]),
        ([2, None, 2], [True, False, False]),
    ],
)
def test_the_second_after_the_first_begins_with_another_epoch(
    finalized: list[int | None], another_epoch: list[bool]
) -> None:
    protocol = TransactionProtocol()
    assert [protocol.follow(version) for version in finalized] == another_epoch
