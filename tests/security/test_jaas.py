from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import ConfigException
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, parse_jaas
from aioproducer.security.password import Password

NAME = "sasl.jaas.config"


def options(text: str) -> dict[str, str]:
    entry = parse_jaas(NAME, Password(text))
    assert entry.login_module == PLAIN_LOGIN_MODULE
    return dict(entry.options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (' required username="alice" password="a b;c=d";', {"username": "alice", "password": "a b;c=d"}),
        ("\nrequired\n username='alice'\n password='it\\'s'\n;\n", {"username": "alice", "password": "it's"}),
        (' REQUIRED a="\\"quoted\\"\\\\" ;', {"a": '"quoted"\\'}),
        (" optional serviceName=kafka useKeyTab=true;", {"serviceName": "kafka", "useKeyTab": "true"}),
        (' required user_alice="x" user_bob.b-c="y";', {"user_alice": "x", "user_bob.b-c": "y"}),
        (' required a="";', {"a": ""}),
        (" required;", {}),
    ],
)
def test_options(text: str, expected: dict[str, str]) -> None:
    assert options(PLAIN_LOGIN_MODULE + text) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_secret_can_be_quoted(secret: str) -> None:
    quoted = secret.replace("\\", "\\\\").replace('"', '\\"')
    assert options(f'{PLAIN_LOGIN_MODULE} required password="{quoted}";') == {"password": secret}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not of the form: LoginModule"),
        ('required password="planted";', "not of the form"),
        ('X required password="planted"', "not of the form"),
        ('X maybe password="planted";', "not of the form"),
        ('X required password="planted"; Y required;', "option 2 of X is not|not of the form"),
        ('X required a="1" planted;', "option 2 of X is not of the form"),
        ('X required password="planted;', "option 1 of X is not of the form"),
        ('X required password="planted"password2="planted";', "option 1 of X is not of the form"),
        ('X required password="planted" password="planted";', "option password of X is there twice"),
    ],
)
def test_a_wrong_jaas_config_is_refused_without_being_shown(text: str, message: str) -> None:
    with pytest.raises(ConfigException, match=message) as refused:
        parse_jaas(NAME, Password(text))
    assert refused.value.name == NAME
    assert "planted" not in "".join(traceback.format_exception(refused.value))


def test_its_options_are_in_no_repr() -> None:
    assert "planted" not in repr(parse_jaas(NAME, Password('X required password="planted";')))
