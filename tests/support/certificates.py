"""An authority of the tests' own, and files with what it has certified."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Certificates:
    """PEM files: of whom to believe, and what the broker and a client show. ``stranger`` is of another authority."""

    authority: Path
    broker: Path
    client: Path
    stranger: Path
    other_authority: Path


def make_certificates(directory: Path) -> Certificates:
    """The broker's are for 127.0.0.1 and localhost."""
    trustme = pytest.importorskip("trustme", reason="trustme is not installed")
    authority, other = trustme.CA(), trustme.CA()
    made = Certificates(*(directory / f"{name}.pem" for name in Certificates.__dataclass_fields__))
    authority.cert_pem.write_to_path(made.authority)
    other.cert_pem.write_to_path(made.other_authority)
    names = ("127.0.0.1", "localhost")
    authority.issue_cert(*names, common_name="broker").private_key_and_cert_chain_pem.write_to_path(made.broker)
    of_client = authority.issue_cert("client.example", common_name="alice", organization_name="Example, Inc.")
    of_client.private_key_and_cert_chain_pem.write_to_path(made.client)
    other.issue_cert("x.example").private_key_and_cert_chain_pem.write_to_path(made.stranger)
    return made
