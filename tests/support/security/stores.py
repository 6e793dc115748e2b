"""Key stores and trust stores made by Java's keytool."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.security.certificates import Certificates

PASSWORD = "store's secret"
KEY_PASSWORD = "key's secret"


@dataclass
class Stores:
    """The same key, certificate and authority in each format; :data:`PASSWORD` is that of each store. The key in
    ``jks_with_key_password`` has :data:`KEY_PASSWORD`."""

    p12: Path
    jks: Path
    jks_with_key_password: Path
    trust_p12: Path
    trust_jks: Path

    def configs(self, kind: str) -> dict[str, str]:
        """The configs of a key store and a trust store, ``p12`` or ``jks``."""
        return {
            "ssl.keystore.location": str(getattr(self, kind)),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(getattr(self, f"trust_{kind}")),
            "ssl.truststore.password": PASSWORD,
        }


def make_stores(directory: Path, certificates: Certificates, key: Path) -> Stores:
    """Writes all files, with the certificate and key in the PEM file ``key``."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

    if shutil.which("keytool") is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError("there is no keytool: Java is missing")
        pytest.skip("Java's key stores are NOT tested: there is no keytool, which comes with Java")
    directory.mkdir(exist_ok=True)
    made = Stores(
        directory / "key.p12",
        directory / "key.jks",
        directory / "key-password.jks",
        directory / "trust.p12",
        directory / "trust.jks",
    )
    pem = key.read_bytes()
    foreign = directory / "foreign.p12"
    leaf, *others = x509.load_pem_x509_certificates(pem)
    private = load_pem_private_key(pem, None)
    foreign.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"mykey",
            private,  # type: ignore[arg-type]
            leaf,
            [*others, *x509.load_pem_x509_certificates(certificates.authority.read_bytes())],
            BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    source = ("-srckeystore", str(foreign), "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD)
    runs = [
        ("-importkeystore", *source, "-destkeystore", str(made.p12), "-deststoretype", "PKCS12"),
        ("-importkeystore", *source, "-destkeystore", str(made.jks), "-deststoretype", "JKS"),
        (
            *("-importkeystore", *source, "-srcalias", "mykey", "-destkeystore", str(made.jks_with_key_password)),
            *("-deststoretype", "JKS", "-destkeypass", KEY_PASSWORD, "-srckeypass", PASSWORD),
        ),
    ]
    for run in runs:
        _keytool(*run, "-deststorepass", PASSWORD)
    for store, type in ((made.trust_p12, "PKCS12"), (made.trust_jks, "JKS")):
        given = ("-importcert", "-noprompt", "-alias", "authority", "-file", str(certificates.authority))
        _keytool(*given, "-keystore", str(store), "-storetype", type, "-storepass", PASSWORD)
    return made


def _keytool(*arguments: str) -> None:
    done = subprocess.run(
        ["keytool", "-J-XX:TieredStopAtLevel=1", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"keytool {arguments[0]}: {done.stdout}{done.stderr}")
