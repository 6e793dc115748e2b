"""The docstring of a package lists every file in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "aioproducer"
PACKAGES = [
    *("delivery_log", "spark", "spark/sink", "spark/exactly_once", "spark/source"),
    *("spark/audit", "spark/audit/frames", "spark/audit/rules", "spark/audit/report"),
    *("admin", "cli", "cli/commands", "compat", "compat/aiokafka", "integrations", "integrations/opentelemetry"),
    *("configs", "errors", "metrics", "net", "protocol", "records", "sync", "tasks", "timing"),
    *("security", "security/oauth"),
    *("producer", "producer/accumulator", "producer/admission", "producer/bulk", "producer/diagnosis"),
    *("producer/exchange", "producer/hooks", "producer/parking", "producer/scheduling", "producer/sender"),
    "producer/transactions",
    *("testing", "testing/faults", "testing/kafka", "testing/mock", "testing/transactions"),
    *("testing/simulation", "testing/simulation/checks", "testing/simulation/faults"),
    *("testing/simulation/network", "testing/simulation/users"),
    "broker",
    *("broker/authorization", "broker/configs", "broker/coordinators", "broker/faults", "broker/log", "broker/network"),
    *("broker/purgatory", "broker/quotas", "broker/requests", "broker/security", "broker/state", "broker/storage"),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_listed(package: str) -> None:
    folder = SOURCE / package
    listed = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    names += [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    assert names
    assert [name for name in names if name not in listed.split() and f"{name}," not in listed.split()] == []
