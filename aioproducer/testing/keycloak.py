"""A real Keycloak on 127.0.0.1 for tests: an identity provider with one realm, as Maven Central has it.

    with Keycloak(realm) as keycloak:
        keycloak.token_url, keycloak.jwks_url

Needs Java 17 and, the first time, Maven. The first time it is also built, which takes half a minute. It starts in half
a minute or more, as its database is in memory and empty. When this process ends in any way, it ends too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from aioproducer.testing.jvm_server import JvmServer, fetch_zip, run_to_end
from aioproducer.testing.kafka.kafka_libs import find_java

VERSION: Final = "26.4.0"

_BUILD: Final = ("build", "--db=dev-mem", "--health-enabled=false")


def fetch_keycloak(version: str = VERSION, *, timeout: float = 600.0) -> Path:
    """The directory of a built Keycloak (170 MB); raises ``KafkaUnavailable`` when Maven or Java is missing."""
    artifact = f"org.keycloak:keycloak-quarkus-dist:{version}:zip"
    return fetch_zip(f"keycloak-{version}", artifact, timeout=timeout, finish=partial(_built, version, timeout))


def _built(version: str, timeout: float, unpacked: Path) -> Path:
    home = unpacked / f"keycloak-{version}"
    script = home / "bin" / "kc.sh"
    script.chmod(0o755)
    run_to_end([str(script), *_BUILD], home, timeout)
    return home


class Keycloak(JvmServer):
    """Runs with the realm ``realm``, which is a representation as Keycloak exports it."""

    name = "Keycloak"

    def __init__(self, realm: Mapping[str, Any], *, start_timeout: float = 240.0) -> None:
        super().__init__(start_timeout=start_timeout)
        self._realm = realm

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{self._realm['realm']}"

    @property
    def token_url(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/certs"

    @property
    def ready_url(self) -> str:
        return self.jwks_url

    def _prepare(self, directory: Path) -> Sequence[str]:
        """The command is that of ``kc.sh start``, which would start a process of its own."""
        home = fetch_keycloak()
        for part in ("bin", "conf", "lib", "providers", "themes"):
            (directory / part).symlink_to(home / part)
        realms = directory / "data" / "import"
        realms.mkdir(parents=True)
        (realms / "realm.json").write_text(json.dumps(self._realm))
        return [
            find_java(),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dkc.home.dir={directory}",
            f"-Djboss.server.config.dir={directory}/conf",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
            "-Djava.util.concurrent.ForkJoinPool.common.threadFactory="
            "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory",
            *("-cp", f"{directory}/lib/quarkus-run.jar", "io.quarkus.bootstrap.runner.QuarkusEntryPoint"),
            *("start", "--optimized", "--import-realm", "--cache=local", "--http-enabled=true"),
            *("--http-host=127.0.0.1", f"--http-port={self._port}", f"--hostname={self.url}"),
        ]
