from __future__ import annotations

import logging

import pytest

from aioproducer.security.password import Password


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
