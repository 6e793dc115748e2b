from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.configs import providers
from aioproducer.configs.producer_config import producer_config
from aioproducer.configs.providers import Resolved, resolved
from aioproducer.errors import ConfigException

PLANTED = "pa$$word=planted"


def look_up(value: str, names: str = "file,directory,env", **more: str) -> object:
    """What becomes of the config ``a``."""
    configs = {"config.providers": names, "a": value, **{name.replace("__", "."): text for name, text in more.items()}}
    return resolved(configs)["a"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A directory as Kubernetes mounts one: files behind a symbolic link, which is replaced when they change."""
    (tmp_path / "..1").mkdir()
    (tmp_path / "..1" / "password").write_text(PLANTED)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "password").symlink_to("..data/password")
    (tmp_path / "kafka.properties").write_text(f"alice={PLANTED}\nbob=other\n")
    return tmp_path


def test_each_provider(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", PLANTED)
    assert look_up("${env:PASSWORD}") == PLANTED
    assert look_up("${env::PASSWORD}") == PLANTED
    assert look_up(f"${{directory:{secrets}:password}}") == PLANTED
    both = f'user_a="${{file:{secrets}/kafka.properties:alice}}" user_b="${{file:{secrets}/kafka.properties:bob}}";'
    assert look_up(both) == f'user_a="{PLANTED}" user_b="other";'


def test_a_text_that_is_no_reference_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("${other:x} $x ${env} 100% ${", "${}", "plain"):
        assert look_up(text) == text
    assert look_up("${env:PATH}", "") == "${env:PATH}", "not without a provider of this name"
    assert resolved({"a": 7, "b": None}) == {"a": 7, "b": None}


def test_a_value_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "${env:B}")
    monkeypatch.setenv("B", "b")
    once = resolved({"config.providers": "env", "a": "${env:A}"})
    assert once["a"] == "${env:B}"
    assert resolved(once) == once


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NOT_SET}", r"config 'a': there is nothing for \$\{env:NOT_SET\}"),
        ("${env:/path:X}", "an environment variable has no path"),
        ("${file:{dir}/kafka.properties:carol}", "there is nothing for"),
        ("${file:{dir}/none:alice}", "none: No such file"),
        ("${file:{dir}:alice}", "is no file"),
        ("${file:alice}", "it needs the path of a .properties file"),
        ("${file:{dir}/broken:alice}", r"broken: not a \.properties text"),
        ("${file:{dir}/bytes:alice}", "byte 0 is not UTF-8"),
        ("${file:{dir}/large:alice}", "large is larger than 1048576 bytes"),
        ("${directory:{dir}:none}", "there is nothing for"),
        ("${directory:password}", "it needs the path of a directory"),
        ("${directory:{dir}:../x}", "its key must be the name of a file"),
        ("${directory:{dir}:..}", "its key must be the name of a file"),
        ("${directory:{dir}:}", "its key must be the name of a file"),
        ("${directory:{dir}:large}" * 3, "larger than 1048576 bytes"),
    ],
)
def test_a_reference_that_cannot_be_replaced_is_refused(
    secrets: Path, monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    (secrets / "broken").write_text(r"planted=\u12")
    (secrets / "bytes").write_bytes(b"\xff")
    (secrets / "large").write_bytes(b"planted " * 2**18)
    with pytest.raises(ConfigException, match=message) as caught:
        look_up(value.replace("{dir}", str(secrets)))
    assert caught.value.name == "a"
    assert "planted" not in "".join(traceback.format_exception(caught.value))


def test_a_value_has_a_largest_size(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "LARGEST_VALUE", 40)
    assert look_up(f"${{directory:{secrets}:password}}" * 2) == PLANTED * 2
    with pytest.raises(ConfigException, match="longer than 40 characters"):
        look_up(f"${{directory:{secrets}:password}}" * 3)


class TestParameters:
    def test_only_files_in_allowed_paths_are_read(
        self, secrets: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        (other / "password").write_text("other")
        (secrets / "escapes").symlink_to(other / "password")
        allowed = {"config__providers__directory__param__allowed__paths": f"/none, {secrets}"}
        assert look_up(f"${{directory:{secrets}:password}}", **allowed) == PLANTED
        for path, name in ((other, "password"), (secrets, "escapes"), (f"{secrets}/../{other.name}", "password")):
            with pytest.raises(ConfigException, match=r"is not in allowed\.paths"):
                look_up(f"${{directory:{path}:{name}}}", **allowed)

    def test_only_variables_that_match_the_allowlist_are_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_X", "x")
        allowed = {"config__providers__env__param__allowlist__pattern": "KAFKA_.*"}
        assert look_up("${env:KAFKA_X}", **allowed) == "x"
        with pytest.raises(ConfigException, match=r"does not match allowlist\.pattern"):
            look_up("${env:PATH}", **allowed)

    @pytest.mark.parametrize(
        ("configs", "message"),
        [
            ({"config.providers": 7}, "'config.providers': it must be a list of names"),
            ({"config.providers": "vault"}, "'config.providers.vault.class': it is missing: vault is none of file, "),
            ({"config.providers.env.class": "x"}, "'config.providers.env.class': config.providers has no such"),
            ({"config.providers": "env", "config.providers.env.x": "y"}, "'config.providers.env.x'"),
            ({"config.providers": "env", "config.providers.env.param.x": "y"}, "there is no parameter x"),
            (
                {"config.providers": "env", "config.providers.env.param.x=y": "y"},
                "there is no parameter whose name is not",
            ),
            (
                {"config.providers": "env", "config.providers.env.x=y": "y"},
                "^a config, whose name is not shown, .*has no",
            ),
            ({"config.providers": "env", "config.providers.env.param.allowlist.pattern": "("}, "param'"),
            ({"config.providers": "v", "config.providers.v.class": "no.such.Class"}, "cannot be imported"),
            ({"config.providers": "v", "config.providers.v.class": object}, "its objects need a method get"),
        ],
    )
    def test_wrong_ones(self, configs: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigException, match=message):
            resolved(configs)


class Vault:
    """A user's own provider."""

    closed: ClassVar[list[Vault]] = []

    def configure(self, params: Mapping[str, object]) -> None:
        self.url = params["url"]

    def get(self, path: str, keys: set[str]) -> Mapping[str, str]:
        if path == "fails":
            raise RuntimeError(PLANTED)
        return {key: f"{self.url}/{path}/{key}" for key in keys}

    def close(self) -> None:
        self.closed.append(self)


def test_a_provider_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Vault, "closed", [])
    configs = {"config.providers": ["my_vault"], "config_providers_my_vault_class": Vault}
    configs |= {"config.providers.my_vault.param.url": "https://v", "a": "${my_vault:secret/kafka:x}"}
    assert resolved(configs)["a"] == "https://v/secret/kafka/x"
    assert len(Vault.closed) == 1
    with pytest.raises(ConfigException, match=r"\$\{my_vault:fails:x\} cannot be replaced: RuntimeError") as caught:
        resolved({**configs, "a": "${my_vault:fails:x}"})
    assert "planted" not in "".join(traceback.format_exception(caught.value))
    assert len(Vault.closed) == 2


def test_kafkas_class_names(secrets: Path) -> None:
    package = "org.apache.kafka.common.config.provider"
    more = {"config__providers__mounted__class": f"{package}.DirectoryConfigProvider"}
    assert look_up(f"${{mounted:{secrets}:password}}", "mounted", **more) == PLANTED


def test_a_producer_and_a_broker(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINGER", "7")
    given = {
        "bootstrap.servers": "b:1",
        "config.providers": "env,directory",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.plain.username": "alice",
        "sasl.plain.password": f"${{directory:{secrets}:password}}",
        "linger.ms": "${env:LINGER}",
    }
    config = producer_config(given)
    assert (config.linger_ms, config.pipeline) == (7, "fixed")
    assert config.sasl_plain_password is not None
    assert config.sasl_plain_password.value == PLANTED
    assert "planted" not in repr(config)
    assert BrokerConfig.of({"config_providers": "env", "num_partitions": "${env:LINGER}"}).num_partitions == 7


@pytest.mark.parametrize("name", ["linger.ms", "acks", "partitioner.class", "security.protocol", "sasl.plain.password"])
def test_no_message_shows_what_a_reference_stands_for(name: str, secrets: Path) -> None:
    written = f"${{directory:{secrets}:password}}"
    with pytest.raises(ConfigException) as caught:
        producer_config({"bootstrap.servers": "b:1", "config.providers": "directory", name: written})
    assert "planted" not in "".join(traceback.format_exception(caught.value))
    assert "planted" not in f"{caught.value.value!r}{caught.value.value}"
    assert name in str(caught.value)


def test_its_repr_is_what_was_written() -> None:
    assert repr(look_up("${env:PATH}")) == "'${env:PATH}'"
    assert isinstance(look_up("${env:PATH}"), Resolved)
