"""The command line of a JVM that runs a main class of Kafka, and its properties file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

# The fastest start and a small process: only the first compiler tier, and a collector without its own threads.
QUICK_START: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# The flags that bin/kafka-server-start.sh and bin/kafka-run-class.sh give a broker.
PERFORMANCE: Final = (
    "-server",
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)


def jvm_command(
    java: str, libs: Path, flags: Sequence[str], *, log_level: str, classpath: Sequence[Path] = ()
) -> list[str]:
    """The start of a command line, up to the main class. Log lines go to stderr, with their time.

    ``classpath`` has directories and jars beside those of ``libs``.
    """
    log = "-Dorg.slf4j.simpleLogger"
    return [
        java,
        *flags,
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        f"{log}.defaultLogLevel={log_level}",
        f"{log}.showDateTime=true",
        f"{log}.dateTimeFormat=HH:mm:ss.SSS",
        # Every client and broker prints each of its hundreds of configs here.
        f"{log}.log.org.apache.kafka.common.config.AbstractConfig=warn",
        "-cp",
        os.pathsep.join([f"{libs}/*", *map(str, classpath)]),
    ]


def properties_text(properties: Mapping[str, str]) -> str:
    """A Java properties file, to be written in UTF-8."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    """Escapes backslashes, line ends, and a space at the start, which Java would skip."""
    return re.sub(r"[\\\n\r]|^ ", lambda found: _ESCAPES[found[0]], value)


_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", " ": "\\ "}
