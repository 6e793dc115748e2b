from __future__ import annotations

import pickle

from aioproducer.errors.error_code import ErrorCode


def test_numbers_have_no_holes() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_an_unknown_number_is_an_unknown_error() -> None:
    for number in (134, 32767, -2, -32768):
        assert ErrorCode(number) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_is_its_number() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert int(ErrorCode.NOT_LEADER_OR_FOLLOWER) == 6
    assert pickle.loads(pickle.dumps(ErrorCode.INVALID_TXN_STATE)) is ErrorCode.INVALID_TXN_STATE
