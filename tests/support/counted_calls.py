"""Counts the calls of functions: the same on a busy machine, unlike a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

CLIENT = ("aioproducer/producer/", "aioproducer/net/", "aioproducer/metrics/")


class Calls:
    """How many functions were called, of Python and of C."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        self.count += event in ("call", "c_call")


class CallsIn(Calls):
    """How many functions of Python were called that stand in files of these folders."""

    def __init__(self, *folders: str) -> None:
        super().__init__()
        self._folders = folders

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        self.count += event == "call" and any(folder in frame.f_code.co_filename for folder in self._folders)
