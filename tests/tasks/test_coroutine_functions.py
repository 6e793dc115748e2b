"""Coroutine functions, and objects that are called like them."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from aioproducer.tasks.coroutine_functions import is_async


async def coroutine() -> None: ...


class Called:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize("function", [coroutine, functools.partial(coroutine), Called().__call__, Called()])
def test_a_call_must_be_awaited(function: Any) -> None:
    assert is_async(function)


@pytest.mark.parametrize("function", [len, print, int, Called, lambda: coroutine(), None, "coroutine"])
def test_a_call_need_not_be_awaited(function: Any) -> None:
    assert not is_async(function)
