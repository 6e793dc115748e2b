"""A certificate authority for tests, and files with its certificates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Certificates:
    """PEM files: the trusted authority, and the certificates of the broker and of a client. ``stranger`` is certified
    by another authority."""

    authority: Path
    broker: Path
    client: Path
    stranger: Path
    other_authority: Path


def make_certificates(directory: Path) -> Certificates:
    """Writes all files; the broker's certificate is for 127.0.0.1 and localhost."""
    trustme = pytest.importorskip("trustme", reason="trustme is not installed")
    authority, other = trustme.CA(), trustme.CA()
    made = Certificates(*(directory / f"{name}.pem" for name in Certificates.__dataclass_fields__))
    authority.cert_pem.write_to_path(made.authority)
    other.cert_pem.write_to_path(made.other_authority)
    _write(made.broker, authority.issue_cert("127.0.0.1", "localhost", common_name="broker"))
    _write(made.client, authority.issue_cert("client.example", common_name="alice", organization_name="Example, Inc."))
    _write(made.stranger, other.issue_cert("stranger.example"))
    return made


def _write(path: Path, issued: Any) -> None:
    """Writes a certificate and its key, in PKCS #8 because Java reads no other form."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(key + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
