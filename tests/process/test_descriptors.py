from __future__ import annotations

import resource

import pytest

from aioproducer.process import descriptors
from aioproducer.process.descriptors import is_reserved, limit, raise_limit


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The soft and the hard limit, which are not this process's."""
    both = [256, 4096]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(both))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: both.__setitem__(slice(None), new))
    return both


@pytest.mark.parametrize(("soft", "first"), [(256, 224), (1024, 992), (64, 48), (40, 30)])
def test_the_last_ones_are_not_for_connections(limits: list[int], soft: int, first: int) -> None:
    limits[0] = soft
    assert [is_reserved(first - 1), is_reserved(first), is_reserved(soft - 1)] == [False, True, True]


def test_without_a_limit_none_is_the_last(limits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    limits[0] = resource.RLIM_INFINITY
    assert limit() is None
    assert not is_reserved(10**6)
    monkeypatch.setattr(descriptors, "resource", None)
    assert limit() is None
    raise_limit()


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(256, 4096, 4096), (256, resource.RLIM_INFINITY, 1024 * 1024), (512, 512, 512), (2**30, 2**30, 2**30)],
)
def test_raised_as_far_as_may_be(limits: list[int], soft: int, hard: int, raised: int) -> None:
    limits[:] = soft, hard
    raise_limit()
    assert limits == [raised, hard]


def test_a_limit_that_the_system_refuses_stays(limits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, new: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_limit()
    assert limits == [256, 4096]
