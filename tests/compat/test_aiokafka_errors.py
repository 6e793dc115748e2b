from __future__ import annotations

import copy
import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aioproducer import DeliveryError, KafkaError, LedgerEntry, Outcome
from aioproducer.compat.aiokafka import RecordMetadata, TopicPartition, errors
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidProducerEpochException,
    NetworkException,
    NotLeaderOrFollowerException,
    ProducerFencedException,
    SaslAuthenticationException,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
aiokafka_errors = pytest.importorskip("aiokafka.errors")

NAMES = sorted(errors._TREE)

NAMED_OTHERWISE = {
    ErrorCode.NONE,
    ErrorCode.NETWORK_EXCEPTION,  # of another meaning in aiokafka
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ErrorCode.ILLEGAL_SASL_STATE,
}


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is where aiokafka is not installed."""
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    spec = importlib.util.spec_from_file_location("own_errors", Path(errors.__file__ or ""))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "own_errors", module)
    spec.loader.exec_module(module)
    return module


def caused(error: KafkaError, cause: BaseException) -> KafkaError:
    error.__cause__ = cause
    return error


def late(*ledger: tuple[str, float], cause: KafkaError | None = None) -> KafkaError:
    error = TimeoutException("late")
    error.ledger = tuple(LedgerEntry(what, seconds, 1) for what, seconds in ledger)
    return error if cause is None else caused(error, cause)


def lineage(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__mro__ if base.__name__ in {*NAMES, "RuntimeError", "Exception"}]


def test_error_classes_are_aiokafkas_own_where_it_is_installed() -> None:
    assert all(getattr(errors, name) is getattr(aiokafka_errors, name) for name in NAMES)
    assert RecordMetadata is aiokafka.structs.RecordMetadata
    assert TopicPartition is aiokafka.TopicPartition
    assert set(NAMES) <= set(dir(errors))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        errors.Nothing  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_error_classes_are_like_aiokafkas_where_it_is_not_installed(own: ModuleType, name: str) -> None:
    mine: Any = getattr(own, name)
    its: Any = getattr(aiokafka_errors, name)
    assert mine is not its
    assert lineage(mine) == lineage(its)
    for flag in ("errno", "retriable", "invalid_metadata"):
        assert getattr(mine, flag, None) == getattr(its, flag, None)
    if name != "BrokerResponseError":  # the base of those that have a number, and has none
        assert str(mine("what happened")) == str(its("what happened"))
        assert str(pickle.loads(pickle.dumps(mine("what happened")))) == str(its("what happened"))


@pytest.mark.parametrize("code", [code for code in ErrorCode if code not in NAMED_OTHERWISE])
def test_brokers_errors_have_aiokafkas_numbers(code: ErrorCode) -> None:
    translated: Any = errors.translated(error_for(code, "why"))
    known = code in errors._NUMBERED and type(error_for(code, "")).__name__ != "UnnamedApiException"
    assert translated.errno == (code if known else -1)
    assert isinstance(translated, aiokafka_errors.for_code(code if known else -1))
    assert "why" in str(translated)


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (BufferExhaustedException("full"), {"KafkaTimeoutError"}),
        (ProducerFencedException("fenced"), {"ProducerFenced"}),
        (InvalidProducerEpochException("fenced"), {"ProducerFenced"}),
        (NetworkException("lost"), {"KafkaConnectionError"}),
        (SaslAuthenticationException("who"), {"AuthenticationFailedError"}),
        (IllegalArgumentException("no"), {"IllegalArgumentError"}),
        (IllegalStateException("no"), {"IllegalStateError"}),
        (TransactionAbortedException("aborted"), {"KafkaError"}),
        (KafkaError("bug"), {"KafkaError"}),
        (caused(IllegalStateException("failed"), ProducerFencedException("fenced")), {"ProducerFenced"}),
        (caused(TransactionAbortableException("abort"), NetworkException("lost")), {"KafkaConnectionError"}),
        (TransactionAbortableException("abort"), {"UnknownError"}),
        (DeliveryError.of(NetworkException("lost"), Outcome.UNKNOWN), {"KafkaConnectionError"}),
        (late(), {"RequestTimedOutError", "KafkaTimeoutError"}),
        (late(("not answered", 5)), {"RequestTimedOutError", "KafkaTimeoutError"}),
        (late(("linger", 1), ("no leader", 5)), {"LeaderNotAvailableError", "KafkaTimeoutError"}),
        (late(("leader not connected", 5), ("linger", 1)), {"NodeNotReadyError", "KafkaTimeoutError"}),
        (late(("NETWORK_EXCEPTION", 5)), {"KafkaConnectionError", "KafkaTimeoutError"}),
        (late(cause=NotLeaderOrFollowerException("moved")), {"NotLeaderForPartitionError", "KafkaTimeoutError"}),
    ],
    ids=str,
)
def test_every_error_has_one_in_its_place(error: KafkaError, names: set[str]) -> None:
    translated = errors.translated(error)
    assert {name for name in NAMES if type(translated) is getattr(errors, name)} | {
        name for name in names if len(names) > 1 and isinstance(translated, getattr(errors, name))
    } == names
    assert str(error) in str(translated)


def test_a_time_out_has_the_name_that_its_caller_knows() -> None:
    translated = errors.translated(late(("no leader", 5)), late="UnknownTopicOrPartitionError")
    assert isinstance(translated, aiokafka_errors.UnknownTopicOrPartitionError)
    assert isinstance(translated, aiokafka_errors.KafkaTimeoutError)
    assert str(translated) == "[Error 3] UnknownTopicOrPartitionError: late"
    for twin in (copy.copy(translated), pickle.loads(pickle.dumps(translated))):
        assert (type(twin), twin.args) == (type(translated), translated.args)
