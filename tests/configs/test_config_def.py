from __future__ import annotations

import dataclasses
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.configs.config_def import (
    ANY,
    INT_MAX,
    LONG_MAX,
    NON_EMPTY,
    Type,
    Valid,
    at_least,
    between,
    key,
    one_of,
    parse,
    table,
)
from aioproducer.errors import ConfigException
from aioproducer.security.password import Password


@dataclass(frozen=True, slots=True)
class Example:
    servers: tuple[str, ...] = key(Type.LIST, dataclasses.MISSING, NON_EMPTY, "Where to begin.")
    some_switch: bool = key(Type.BOOLEAN, False, ANY, "On or off.")
    small_number: int = key(Type.INT, 5, between(0, 10), "Small.")
    any_number: int = key(Type.INT, 0, ANY, "Any of 32 bits.")
    large_number: int = key(Type.LONG, 0, at_least(-1), "Large.")
    some_share: float = key(Type.DOUBLE, 0.5, between(0, 1), "From 0 to 1.")
    some_word: str = key(Type.STRING, "one", one_of("one", "two"), "A word.")
    some_class: Any = key(Type.CLASS, None, ANY, "A class, or an object of one.")
    some_provider: Any = key(Type.CLASS, None, Valid("callable", callable), "Something to call.")
    some_classes: tuple[Any, ...] = key(Type.CLASSES, (), ANY, "Several.")
    some_secret: Password | None = key(Type.PASSWORD, None, ANY, "Secret.")


def example(**given: object) -> Example:
    return parse(
        Example,
        {"servers": "s", **given},
        unsupported={"not.here": "it is far", "far.": "it is there"},
        owner="example",
    )


def refusal(**given: object) -> ConfigException:
    with pytest.raises(ConfigException) as raised:
        example(**given)
    return raised.value


def test_the_fields_are_the_table() -> None:
    rows = table(Example)
    assert list(rows) == [field.name.replace("_", ".") for field in dataclasses.fields(Example)]
    row = rows["small.number"]
    assert (row.name, row.type, row.default, row.valid.text, row.doc) == (
        "small.number",
        Type.INT,
        5,
        "0 to 10",
        "Small.",
    )
    assert rows["servers"].default is dataclasses.MISSING


def test_a_config_that_is_not_given_has_its_default() -> None:
    assert example() == Example(servers=("s",))


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("some_switch", True, True),
        ("some_switch", "TRUE", True),
        ("some_switch", " false ", False),
        ("small_number", 7, 7),
        ("small_number", " 7 ", 7),
        ("small_number", "+7", 7),
        ("small_number", "007", 7),
        ("any_number", -(2**31), -(2**31)),
        ("any_number", "2147483647", INT_MAX),
        ("large_number", LONG_MAX, LONG_MAX),
        ("large_number", "-1", -1),
        ("some_word", " two", "two"),
        ("servers", "a, b ,,c", ("a", "b", "c")),
        ("servers", ["a", "b"], ("a", "b")),
        ("servers", ("a",), ("a",)),
        ("some_class", len, len),
        ("some_class", None, None),
        ("some_class", " collections.OrderedDict ", OrderedDict),
        ("some_class", "collections:OrderedDict", OrderedDict),
        ("some_class", OrderedDict, OrderedDict),
        ("some_classes", (), ()),
        ("some_classes", "", ()),
        ("some_classes", len, (len,)),
        ("some_classes", [OrderedDict, len], (OrderedDict, len)),
        ("some_classes", "collections.OrderedDict, builtins.len", (OrderedDict, len)),
        ("some_classes", ["builtins.len", OrderedDict], (len, OrderedDict)),
        ("some_secret", " with blanks ", Password(" with blanks ")),
        ("some_secret", Password(" x"), Password(" x")),
    ],
)
def test_values_come_as_text_or_as_they_are(name: str, given: object, value: object) -> None:
    for written in (name, name.replace("_", ".")):
        assert getattr(parse(Example, {"servers": "s"} | {written: given}), name) == value


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("some_switch", 1, "of type boolean"),
        ("some_switch", "yes", "of type boolean"),
        ("some_switch", None, "of type boolean"),
        ("small_number", -1, "0 to 10"),
        ("small_number", "11", "0 to 10"),
        ("small_number", "five", "of type int, 0 to 10"),
        ("small_number", 5.0, "of type int, 0 to 10"),
        ("small_number", True, "of type int, 0 to 10"),
        ("small_number", "1_0", "of type int, 0 to 10"),
        ("small_number", "٣", "of type int, 0 to 10"),
        ("small_number", "9" * 10_000, "of type int, 0 to 10"),
        ("small_number", None, "of type int, 0 to 10"),
        ("any_number", 2**31, "of type int, at least -2147483648 and at most 2147483647"),
        ("large_number", 2**63, "of type long, at least -1 and at most 9223372036854775807"),
        ("large_number", -2, "at least -1"),
        ("some_word", "three", "one of one, two"),
        ("some_word", b"one", "of type string, one of one, two"),
        ("servers", "", "non-empty"),
        ("servers", " , ", "non-empty"),
        ("servers", [], "non-empty"),
        ("servers", b"a", "of type list, non-empty"),
        ("servers", [1], "of type list, non-empty"),
        ("servers", 5, "of type list, non-empty"),
        ("some_class", "", "of type class"),
        ("some_classes", ["builtins.len", None], "of type list of classes"),
    ],
)
def test_an_error_names_the_config_its_value_and_the_values_allowed(name: str, given: object, allowed: str) -> None:
    error = refusal(**{name: given})
    dotted = name.replace("_", ".")
    assert error.name == dotted
    assert error.value is given
    assert str(error) == f"config {dotted!r} is {given!r}; it must be {allowed}"


def test_a_class_that_cannot_be_imported_is_named() -> None:
    error = refusal(some_classes="builtins.len, no.such.thing")
    assert (error.name, error.value) == ("some.classes", "no.such.thing")


def test_the_error_of_a_typo_names_the_nearest_config() -> None:
    assert str(refusal(smal_number=5)) == "unknown example config 'smal.number'; did you mean 'small.number'?"
    assert str(refusal(quite_different=5)) == "unknown example config 'quite.different'"


def test_a_name_that_may_be_a_secret_is_not_shown() -> None:
    for name, hint in (
        ("small.number=PLANTED", "; did you mean 'small.number'?"),
        ("SMALL_NUMBER", "; did you mean 'small.number'?"),
        ("MIGHPLANTED", "; in a .properties file, '=' follows the name, and each line of a value but the last ends"),
        ("far.away.PLANTED", "; in a .properties file"),
    ):
        error = refusal(**{name: 5})
        assert str(error).startswith("unknown example config, whose name is not shown, because it does not look like")
        assert hint in str(error)
        assert error.name is None
        assert "PLANTED" not in str(error)


def test_of_what_may_hold_a_secret_only_the_class_is_shown() -> None:
    for name, value, shown in (
        ("some_provider", ["PLANTED"], list),
        ("some_provider", ("PLANTED",), tuple),
        ("servers", {"user:PLANTED@host:1"}, set),
        ("servers", b"user:PLANTED@host:1", bytes),
    ):
        error = refusal(**{name: value})
        assert error.value is shown
        assert f" is {shown!r}; it must be " in str(error)


def test_an_unsupported_config_is_refused_by_name_or_prefix() -> None:
    for name in ("not.here", "not_here", "far.away", "far_away_too"):
        error = refusal(**{name: 5})
        assert ": it is " in str(error)
        assert error.name == name.replace("_", ".")
    assert "unknown" in str(refusal(**{"not.here.either": 5}))


def test_given_twice() -> None:
    assert str(refusal(**{"small.number": 5, "small_number": 5})) == "config 'small.number' is given twice"


def test_missing() -> None:
    with pytest.raises(ConfigException, match=r"config 'servers' is missing: Where to begin\."):
        parse(Example, {})


@given(name=st.text(max_size=20), value=st.text(max_size=20))
def test_values_of_unknown_configs_are_never_shown(name: str, value: str) -> None:
    """They may be secrets: a password under a name with a typo."""
    secret = f"<{value}>"
    try:
        example(**{name + "?": secret})
    except ConfigException as error:
        assert secret not in str(error)  # noqa: PT017
        assert error.value is None  # noqa: PT017
    else:
        raise AssertionError("an unknown config was taken")
