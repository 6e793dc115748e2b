from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.audit.place import Place
from tests.cli.conftest import environment


@pytest.mark.parametrize(
    ("name", "for_spark", "shown"),
    [
        ("hdfs:/audits/orders", "hdfs:/audits/orders", "hdfs:/audits/orders/report.html"),
        ("s3a://bucket/orders/", "s3a://bucket/orders", "s3a://bucket/orders/report.html"),
        ("of orders/", f"file:{Path.cwd()}/of orders", "of orders/report.html"),
        ("C:/audits", f"file:{Path.cwd()}/C:/audits", "C:/audits/report.html"),
    ],
)
def test_a_place_without_a_scheme_is_a_local_path(name: str, for_spark: str, shown: str) -> None:
    place = Place(name)
    assert (str(place), place.path("report.html")) == (for_spark, shown)


def test_text_is_written_as_utf_8_in_any_locale(tmp_path: Path) -> None:
    place = "import sys; from aioproducer.spark.audit.place import Place; Place(sys.argv[1])"
    program = place + r".write_text(None, 'r', '\u2026')"
    plain = environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    subprocess.run([sys.executable, "-c", program, tmp_path], env=plain, check=True)
    assert (tmp_path / "r").read_bytes() == "…".encode()


def test_a_client_of_spark_connect_writes_to_its_own_machine(tmp_path: Path) -> None:
    client: Any = object()
    Place(str(tmp_path)).check_writable(client)
    with pytest.raises(IllegalArgumentException, match=r"^s3a://bucket/orders: with Spark Connect"):
        Place("s3a://bucket/orders").check_writable(client)
