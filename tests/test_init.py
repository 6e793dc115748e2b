"""The public names of the package, which are imported on first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

import aioproducer
import aioproducer.outbox
import aioproducer.schema_registry
import aioproducer.spark
import aioproducer.testing
from aioproducer.sync import KafkaProducer as KafkaProducerOfThreads
from aioproducer.testing import MockProducer

PACKAGES = [aioproducer, aioproducer.outbox, aioproducer.testing]


def imported_for_type_checkers(package: object) -> dict[str, str]:
    tree = ast.parse(Path(str(package.__file__)).read_text())  # type: ignore[attr-defined]
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_is_there_and_type_checkers_see_the_same(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert names == sorted(names)
    assert imported_for_type_checkers(package) == package._HOMES  # type: ignore[attr-defined]
    assert sorted(package._HOMES) == names  # type: ignore[attr-defined]
    for name, home in package._HOMES.items():  # type: ignore[attr-defined]
        assert getattr(package, name) is getattr(import_module(home), name)
    assert set(names) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'KafkaConsumer'"):
        package.KafkaConsumer  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    "package", [*PACKAGES, aioproducer.schema_registry, aioproducer.spark], ids=lambda package: package.__name__
)
def test_an_import_that_fails_says_why(package: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of compiled code does where librt is too old, whatever pip was told to install."""
    (tmp_path / "broken_home.py").write_text("import sys\nsys._C_API\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(package._HOMES, "Broken", "broken_home")  # type: ignore[attr-defined]
    name = package.__name__  # type: ignore[attr-defined]
    reason = f"cannot import 'Broken' from '{name}': module 'sys' has no attribute '_C_API'"
    with pytest.raises(ImportError, match=reason) as raised:
        exec(f"from {name} import Broken")
    assert isinstance(raised.value.__cause__, AttributeError)


@pytest.mark.parametrize(
    "producer",
    [aioproducer.KafkaProducer, KafkaProducerOfThreads, MockProducer],
    ids=lambda producer: producer.__module__,
)
def test_annotations_of_public_methods_can_be_looked_up(producer: type) -> None:
    """Frameworks do that with methods that they are given, as FastAPI with a dependency."""
    names = [name for name in vars(producer) if not name.startswith("_") and callable(getattr(producer, name))]
    assert len(names) > 10
    for name in names:
        assert get_type_hints(getattr(producer, name)) is not None


def ran(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What a program did in a new interpreter, which finds nothing but the package and what is installed."""
    root = str(Path(aioproducer.__file__).parents[1])
    command = [sys.executable, *options, "-c", program]
    return subprocess.run(command, env={"PYTHONPATH": root}, capture_output=True, text=True, timeout=50)


def test_names_are_imported_on_first_use() -> None:
    program = (
        "import sys, aioproducer, aioproducer.outbox, aioproducer.testing; "
        "print([m for m in sys.modules if m.startswith('aioprod')])"
    )
    done = ran(program)
    assert done.stdout == "['aioproducer', 'aioproducer.outbox', 'aioproducer.testing']\n", done.stderr


def test_the_producer_brings_nothing_large_that_it_does_not_need_yet() -> None:
    program = "import asyncio, sys; before = {*sys.modules}; from aioproducer import KafkaProducer; "
    done = ran(program + "print(*({*sys.modules} - before))")
    brought = set(done.stdout.split())
    assert "aioproducer.producer.producer" in brought, done.stderr
    late = {"aioproducer.producer.assembly", "datetime", "fastcrc", "json", "pkgutil"}
    assert not brought & late


@pytest.mark.parametrize(
    "module",
    [
        "net.security.sasl_authenticator",
        "producer.sender.log_inquiry",
        "producer.transactions.transaction_manager",
        "producer.units.units",
        "security.kerberos.settings",
        "security.oauth.settings",
        "security.tls.sources",
        "telemetry.push_task",
    ],
)
def test_what_few_producers_need_is_imported_by_the_first_that_does(module: str, modules_of_a_producer: str) -> None:
    assert "'aioproducer.producer.producer'" in modules_of_a_producer
    assert f"'aioproducer.{module}'" not in modules_of_a_producer
    assert import_module(f"aioproducer.{module}") is not None


@pytest.fixture(scope="module")
def modules_of_a_producer() -> str:
    """All that are imported when a producer has been made."""
    program = "import sys, aioproducer; aioproducer.KafkaProducer(bootstrap_servers='b:1'); print(list(sys.modules))"
    done = ran(program)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT_ASSERTS = """
import asyncio
from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster

async def main():
    assert False
    async with EmbeddedCluster() as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                print((await producer.send("t", b"v", key=b"k", headers=[("h", b"v")])).offset)

asyncio.run(main())
"""


def test_it_runs_without_asserts() -> None:
    done = ran(WITHOUT_ASSERTS, "-O")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_it_is_imported_where_there_is_no_fork() -> None:
    program = (
        "import asyncio, logging, os, random; del os.register_at_fork; "
        "import aioproducer.sync; aioproducer.KafkaProducer; print('there')"
    )
    done = ran(program)
    assert done.stdout == "there\n", done.stderr
