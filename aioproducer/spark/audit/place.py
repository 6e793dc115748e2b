"""The directory that an audit writes to: on this machine, or in any file system that Spark can reach."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aioproducer.errors import IllegalArgumentException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""At least two letters, because a single letter is a Windows drive."""


class Place:
    """``hdfs:/audits/orders``, ``s3a://bucket/orders``; or, without a scheme, a directory of this machine."""

    def __init__(self, name: str) -> None:
        self._local = None if _SCHEME.match(name) else Path(name).absolute()
        self._name = name.rstrip("/")

    def __str__(self) -> str:
        """The path for Spark, which takes one without a scheme for a directory of its default file system."""
        return self._name if self._local is None else f"file:{self._local.as_posix()}"

    def path(self, name: str) -> str:
        """A file or a directory in it, as shown to people."""
        return f"{self._name}/{name}"

    def make(self) -> None:
        """OSError if this machine cannot have the directory. Elsewhere it exists as soon as something is in it."""
        if self._local is not None:
            self._local.mkdir(parents=True, exist_ok=True)

    def check_writable(self, spark: SparkSession) -> None:
        """IllegalArgumentException if ``write_text`` cannot write there with this session."""
        if self._local is None and not hasattr(spark, "_jsparkSession"):
            raise IllegalArgumentException(
                f"{self._name}: with Spark Connect an audit's directory must be one of this machine, to which Spark's "
                "tasks can write as well: a client cannot write the report to other file systems"
            )

    def write_text(self, spark: SparkSession, name: str, text: str) -> None:
        """Writes a file on the driver, in UTF-8, replacing one that was there."""
        if self._local is not None:
            (self._local / name).write_text(text, encoding="utf-8")
            return
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(str(self), name)
        file = path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path, True)
        try:
            file.write(bytearray(text.encode()))
        finally:
            file.close()
