from __future__ import annotations

from pathlib import Path

import pytest
import typer

from aioproducer.cli.options import client_configs, pairs, read_config_file
from aioproducer.errors import ConfigException


def test_pairs() -> None:
    assert pairs(["a=1", " b = x=y ", "c="], "-X") == {"a": "1", "b": "x=y", "c": ""}
    assert pairs(None, "-X") == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [("linger.ms", "'linger.ms'"), ("planted", "number 2 of those given"), ("=planted", "number 2"), ("", "number 2")],
)
def test_no_pair(text: str, shown: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"^{shown}.* is not NAME=VALUE$"):
        pairs(["a=1", text], "-X")


def test_options_override_the_environment_and_files(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nbootstrap.servers=file:1\nlinger.ms : 1\nclient.id=é\n", encoding="utf-8")
    assert client_configs(None, None, None) == {"bootstrap.servers": "localhost:9092"}
    assert client_configs(None, None, None, default_server=None) == {}
    assert client_configs(None, file, None) == {"bootstrap.servers": "file:1", "linger.ms": "1", "client.id": "é"}
    overrides = ["linger_ms=2", "bootstrap.servers=x:1"]
    assert client_configs(None, file, overrides) == {"bootstrap.servers": "x:1", "linger.ms": "2", "client.id": "é"}
    assert client_configs("option:1", file, overrides)["bootstrap.servers"] == "option:1"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a=\\u00zz", r"not a \.properties text"), (b"a=1\nb", "line 2 has no '='"), (b"a=\xff", "byte 2 is not UTF-8")],
)
def test_a_file_that_holds_no_properties(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "bad.properties"
    file.write_bytes(content)
    with pytest.raises(ConfigException, match=rf"bad\.properties.*{message}"):
        read_config_file(file)
