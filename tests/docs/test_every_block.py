"""No code in a document escapes: each block is run by a test, and each command has the options it is shown with."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from aioproducer.cli.app import make_app
from tests.docs.test_code import DOCUMENTS

ROOT = Path(__file__).parents[2]
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
}

RUN_ELSEWHERE = {
    ("README.md", "df.selectExpr("): "tests/spark/documents/test_documents.py",
    ("docs/migrating.md", "from aioproducer.compat.aiokafka import install"): "tests/docs/test_migrating.py",
    ("docs/frameworks.md", ""): "tests/integrations/test_documents.py",
    ("docs/oauth.md", ""): "tests/docs/test_oauth.py",
    ("docs/outbox.md", ""): "tests/outbox/test_documents.py",
    ("docs/schema-registry.md", ""): "tests/docs/test_schema_registry.py",
    ("docs/spark.md", ""): "tests/spark/documents/test_documents.py",
    ("docs/testing.md", ""): "tests/docs/test_testing.py",
    ("docs/tutorial.md", ""): "tests/docs/test_tutorial.py",
    # Celery itself is not needed for what is promised: made before the fork, used after it.
    ("docs/threads.md", "from celery import"): "tests/sync/test_lifetime.py",
}
"""By document and first words of the block: the test that runs it."""


def blocks(text: str) -> list[tuple[str, str]]:
    """The language and the code of each."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    return [found.replace("\\\n", "") for found in re.findall(r"^    (aioproducer (?:.*\\\n)*.*)$", text, re.MULTILINE)]


def test_every_block_of_python_is_run() -> None:
    used = set()
    for document, text in TEXTS.items():
        for language, code in blocks(text):
            if language not in ("py", "python") or (language == "python" and document in DOCUMENTS):
                continue
            found = [key for key in RUN_ELSEWHERE if key[0] == document and code.startswith(key[1])]
            assert found, f"no test runs this block of {document}:\n{code}"
            used |= set(found)
    assert used == RUN_ELSEWHERE.keys()
    for test in RUN_ELSEWHERE.values():
        assert (ROOT / test).exists()


@pytest.mark.parametrize(
    ("document", "command"), [(document, command) for document, text in TEXTS.items() for command in commands(text)]
)
def test_every_command_is_one(document: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options and arguments are taken; most commands are not carried out, because their own tests do that."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").touch()
    _, *words = shlex.split(command, comments=True)
    one: Any = typer.main.get_command(make_app(words[0]))
    while hasattr(one, "commands"):  # a group of click's, or of typer's own copy of it
        one = one.commands[words.pop(0)]
    one.make_context(one.name, words)


def test_a_wrong_command_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above could not fail."""
    with pytest.raises(Exception, match="No such option"):
        test_every_command_is_one("x", "aioproducer topics list --nosuch", tmp_path, monkeypatch)
