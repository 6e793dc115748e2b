"""A real Kerberos realm on 127.0.0.1: MIT's KDC, with a database and a krb5.conf of its own.

Needs Debian's krb5-kdc, krb5-admin-server and krb5-user, or the packages of these programs elsewhere, and the library
gssapi, which ``scripts/test`` installs where it can be built (libkrb5-dev). The tests are skipped where one of these is
missing, in CI, too, and say so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.server_process import free_port
from tests.support.polling import until

REALM: Final = "EXAMPLE.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/opt/krb5/sbin", "/opt/homebrew/opt/krb5/bin")


def require_kerberos() -> None:
    """Skips the test on a machine without MIT Kerberos or the library."""
    pytest.importorskip("gssapi", reason="GSSAPI is NOT tested: the library gssapi is not installed")
    for name in _PROGRAMS:
        if _program(name) is None:
            pytest.skip(f"GSSAPI is NOT tested: there is no {name} (Debian: krb5-kdc, krb5-admin-server, krb5-user)")


class Kdc:
    """A running KDC. ``environment`` is what its clients need."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._guard = ProcessGuard()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.krb5_conf = directory / "krb5.conf"
        self.krb5_conf.write_text(
            f"""[libdefaults]
                default_realm = {REALM}
                dns_lookup_kdc = false
                dns_lookup_realm = false
                dns_canonicalize_hostname = false
                rdns = false
                udp_preference_limit = 1
            [realms]
                {REALM} = {{
                    kdc = 127.0.0.1:{self.port}
                }}
            """
        )
        (directory / "kdc.conf").write_text(
            f"""[kdcdefaults]
                kdc_listen = 127.0.0.1:{self.port}
                kdc_tcp_listen = 127.0.0.1:{self.port}
            [realms]
                {REALM} = {{
                    database_name = {directory}/principal
                    key_stash_file = {directory}/stash
                    acl_file = {directory}/kadm5.acl
                    max_life = 10h
                    max_renewable_life = 1d
                    supported_enctypes = aes256-cts-hmac-sha1-96:normal
                    master_key_type = aes256-cts-hmac-sha1-96
                }}
            [logging]
                kdc = FILE:{directory}/kdc.log
            """
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """For programs that are clients of this realm, or serve it; without a ticket."""
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.directory}/no-tickets",
            "KRB5_CLIENT_KTNAME": f"{self.directory}/no-keytab",
        }

    def create(self) -> None:
        """Creates the empty realm."""
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def start(self) -> None:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        with (self.directory / "output.log").open("ab") as log:
            self._process = self._guard.spawn(
                ["env", *variables, _found("krb5kdc"), "-n", "-r", REALM],
                cwd=self.directory,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        process = self._process
        with suppress(TimeoutError):
            until(lambda: self._serves() or process.poll() is not None, "the KDC does not serve", timeout=20)
        if not self._serves():
            raise RuntimeError(f"the KDC does not serve: {(self.directory / 'output.log').read_text()}")

    def _serves(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.stop()
        self._guard.close()

    def keytab(self, *principals: str, life: str | None = None, name: str | None = None) -> Path:
        """Creates the principals with random keys; ``life`` is that of their tickets."""
        file = self.directory / (name or f"{principals[0].replace('/', '-')}.keytab")
        for principal in principals:
            limit = [] if life is None else ["-maxlife", life]
            self.run("kadmin.local", "-r", REALM, "-q", " ".join(["addprinc", "-randkey", *limit, principal]))
            self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {file} {principal}")
        return file

    def ticket(self, keytab: Path, principal: str, cache: Path, life: str = "1h") -> None:
        """Logs in with kinit."""
        self.run("kinit", "-k", "-t", str(keytab), "-l", life, "-c", str(cache), f"{principal}@{REALM}")

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_found(program), *arguments],
            env={**os.environ, **self.environment},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")


@contextmanager
def running_kdc() -> Iterator[Kdc]:
    """A started realm with no principals of its own."""
    require_kerberos()
    with tempfile.TemporaryDirectory(prefix="aioproducer-kdc-") as directory:
        kdc = Kdc(Path(directory))
        try:
            kdc.create()
            kdc.start()
            yield kdc
        finally:
            kdc.close()


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_PLACES))


def _found(name: str) -> str:
    path = _program(name)
    assert path is not None
    return path
