"""Without PySpark, or what it brings, the error says which extra to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("library", ["pyspark", "pyarrow"])
def test_a_dataframe_without_pyspark_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "aioproducer.spark.dataframe", raising=False)
    with pytest.raises(ImportError, match=r"^aioproducer.spark needs PySpark .*: pip install 'aioproducer\[spark\]'$"):
        import_module("aioproducer.spark.dataframe")
