"""A real Apicurio Registry on 127.0.0.1 for tests: a schema registry with Confluent's API, as Maven Central has it.

    with Apicurio() as registry:
        SchemaRegistryClient(registry.url)

Needs Java 17 and, the first time, Maven. It starts in ten seconds or more, without any schema: its storage is in
memory. When this process ends in any way, it ends too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aioproducer.testing.jvm_server import JvmServer, fetch_zip
from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, find_java

VERSION: Final = "2.6.13.Final"


def fetch_apicurio(version: str = VERSION, *, timeout: float = 600.0) -> Path:
    """The directory of an Apicurio Registry (170 MB); raises ``KafkaUnavailable`` when Maven or Java is missing."""
    artifact = f"io.apicurio:apicurio-registry-app:{version}:zip:all"
    return fetch_zip(f"apicurio-{version}", artifact, timeout=timeout)


@contextmanager
def running_apicurio(properties: Mapping[str, str] | None = None) -> Iterator[Apicurio]:
    """For fixtures. Without Java or Maven the test is skipped, or fails where ``$CI`` is ``true``."""
    import pytest

    try:
        fetch_apicurio()
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run the tests against Apicurio Registry: {missing}", pytrace=False)
        pytest.skip(f"no Apicurio Registry to test against: {missing}")
    with Apicurio(properties) as registry:
        yield registry


class Apicurio(JvmServer):
    """``properties`` are configs of Apicurio's, such as ``registry.auth.enabled``."""

    name = "Apicurio"

    def __init__(self, properties: Mapping[str, str] | None = None, *, start_timeout: float = 240.0) -> None:
        super().__init__(start_timeout=start_timeout)
        self._properties = dict(properties or {})

    @property
    def url(self) -> str:
        """Of Confluent's API."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    @property
    def ready_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/health/ready"

    def _prepare(self, directory: Path) -> Sequence[str]:
        home = fetch_apicurio()
        listens = {"quarkus.http.host": "127.0.0.1", "quarkus.http.port": str(self._port)}
        return [
            find_java(),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *(f"-D{name}={value}" for name, value in {**listens, **self._properties}.items()),
            *("-jar", f"{home}/apicurio-registry-app-{VERSION}-runner.jar"),
        ]
