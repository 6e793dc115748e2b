"""Whether the package under test is compiled."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from aioproducer.producer import record_accumulator

COMPILED = record_accumulator.__file__.endswith(tuple(EXTENSION_SUFFIXES))

interpreted_only = pytest.mark.skipif(COMPILED, reason="puts code of its own where only the interpreter finds it")
