"""Archives of Java classes, with which a JVM starts in half the time (class data sharing, JEP 350: Java 13 or newer).

A JVM that is run with :func:`archiving` writes one when it ends, for the jars on its class path. The JVM ignores an
archive of another Java or of other jars.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# The JVM writes its warnings about an archive into the output of the tool that it runs.
_SILENT: Final = "-Xlog:disable"


def kafka_archive(libs: Path, java: str, use: str) -> Path:
    """Where the archive for this use of the jars is or would be: beside them. ``use`` is ``broker`` or ``tools``."""
    return libs.parent / f"{libs.name}-{use}-{_release(java)}.jsa"


def archive_flags(archive: Path) -> tuple[str, ...]:
    """Flags of a JVM that takes its classes from this archive; none where there is no archive."""
    return (f"-XX:SharedArchiveFile={archive}", _SILENT) if archive.exists() else ()


@contextmanager
def archiving(archive: Path) -> Iterator[tuple[str, ...]]:
    """Flags of a JVM that writes this archive when it ends by itself. The archive appears whole, or not at all.

    A JVM that was installed without an archive of its own classes writes none.
    """
    written = archive.with_name(f"{archive.name}.{os.getpid()}.new")
    yield f"-XX:ArchiveClassesAtExit={written}", _SILENT
    if written.exists():
        written.replace(archive)


@functools.cache
def _release(java: str) -> str:
    """Of this Java: archives of one release are of no use to another."""
    said = subprocess.run([java, "-version"], capture_output=True, timeout=60, check=True).stderr
    return hashlib.sha256(said).hexdigest()[:8]
