from __future__ import annotations

import logging

import pytest

from aioproducer.security.password import Password, without_secrets


def test_its_text_is_its_value_alone(caplog: pytest.LogCaptureFixture) -> None:
    secret = Password("planted")
    logging.getLogger("test").error("%s %r %s", secret, [secret], {"password": secret})
    shown = [str(secret), repr(secret), f"{secret}", repr({"a": (secret,)}), caplog.text]
    assert not any("planted" in text for text in shown)
    assert secret.value == "planted"


def test_equality() -> None:
    assert Password("a") == Password("a")
    assert Password("a") != Password("b")
    assert Password("a") != "a"
    assert hash(Password("a")) == hash(Password("a"))


def test_a_servers_words_are_shown_without_secrets() -> None:
    secrets = ["", "pw", "dXNlcjpwdw==", "user:pw"]
    said = "no user:pw (dXNlcjpwdw==) here; pw is wrong"
    assert without_secrets(said, secrets) == "no [hidden] ([hidden]) here; [hidden] is wrong"
    assert without_secrets(said, []) == said
