from __future__ import annotations

from pathlib import Path

import pytest

from aioproducer.cli.references import resolved
from aioproducer.errors import ConfigException


def test_variables_and_entries_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "from the environment")
    secrets = tmp_path / "a:b.properties"
    secrets.write_text("alice=from a file\n")
    found = resolved(
        {
            "plain": "${other:x} $x ${env} 100%",
            "one": "${env:PASSWORD}",
            "both": f'user_a="${{env:PASSWORD}}" user_b="${{file:{secrets}:alice}}";',
        }
    )
    assert found == {
        "plain": "${other:x} $x ${env} 100%",
        "one": "from the environment",
        "both": 'user_a="from the environment" user_b="from a file";',
    }


def test_a_value_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "${env:B}")
    monkeypatch.setenv("B", "b")
    assert resolved({"a": "${env:A}"}) == {"a": "${env:B}"}


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(ConfigException, match="config 'a': there is no environment variable NOT_SET"):
        resolved({"a": "${env:NOT_SET}"})
    (tmp_path / "empty").write_text("other=secret\n")
    with pytest.raises(ConfigException, match=r"config 'a': .*empty has no entry key") as caught:
        resolved({"a": f"${{file:{tmp_path / 'empty'}:key}}"})
    assert "secret" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        resolved({"a": f"${{file:{tmp_path / 'missing'}:key}}"})
