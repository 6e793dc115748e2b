from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.config_changes import ConfigChange, OpType, changed
from aioproducer.configs.config_def import ANY, Type, key, table
from aioproducer.errors import InvalidConfigurationException, InvalidRequestException


@dataclass(frozen=True, slots=True)
class Example:
    words: tuple[str, ...] = key(Type.LIST, ("a",), ANY, "Some words.")
    number: int = key(Type.INT, 5, ANY, "A number.")


ROWS = table(Example)


def after(current: dict[str, str], *changes: tuple[str, OpType, str | None]) -> dict[str, str]:
    return dict(changed(current, [ConfigChange(*change) for change in changes], ROWS))


def test_set_and_delete() -> None:
    assert after({}, ("number", OpType.SET, "1")) == {"number": "1"}
    assert after({"number": "1"}, ("number", OpType.SET, "2"), ("words", OpType.SET, "")) == {
        "number": "2",
        "words": "",
    }
    assert after({"number": "1"}, ("number", OpType.DELETE, None)) == {}
    assert after({}, ("whatever", OpType.DELETE, None)) == {}


def test_lists_begin_with_the_default() -> None:
    assert after({}, ("words", OpType.APPEND, "b,a,b")) == {"words": "a,b"}
    assert after({}, ("words", OpType.SUBTRACT, "a")) == {"words": ""}
    assert after({"words": ""}, ("words", OpType.APPEND, "c")) == {"words": "c"}


def test_a_list_does_not_become_too_long_to_describe() -> None:
    long = {"words": ",".join(f"{number:05}" for number in range(5000))}
    with pytest.raises(InvalidConfigurationException, match="'words' would be longer than 32767 bytes"):
        after(long, ("words", OpType.APPEND, ",".join(f"x{number:04}" for number in range(5000))))
    assert after(long, ("words", OpType.SUBTRACT, long["words"])) == {"words": ""}


def test_the_argument_is_not_changed() -> None:
    current = {"number": "1"}
    after(current, ("number", OpType.SET, "2"))
    assert current == {"number": "1"}


@pytest.mark.parametrize("operation", [OpType.APPEND, OpType.SUBTRACT])
def test_only_lists_are_appended_to(operation: OpType) -> None:
    with pytest.raises(InvalidConfigurationException, match=f"{operation.name} is only for lists, and config 'number'"):
        after({}, ("number", operation, "1"))


def test_one_config_is_changed_once() -> None:
    with pytest.raises(InvalidRequestException, match="'number' is changed twice"):
        after({}, ("number", OpType.SET, "1"), ("number", OpType.DELETE, None))


@pytest.mark.parametrize(("operation", "value"), [(4, "x"), (-1, "x"), (0, None), (2, None)])
def test_a_change_with_an_impossible_operation_or_value_is_refused(operation: int, value: str | None) -> None:
    with pytest.raises(InvalidRequestException, match="'number'"):
        ConfigChange.of("number", operation, value)


PARTS = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(current=PARTS.map(dict.fromkeys).map(list), parts=PARTS, operation=st.sampled_from(list(OpType)[2:]))
def test_appending_and_subtracting_is_what_sets_do_in_order(
    current: list[str], parts: list[str], operation: OpType
) -> None:
    left = after({"words": ",".join(current)}, ("words", operation, ",".join(parts)))["words"].split(",")
    left = [part for part in left if part]
    if operation is OpType.APPEND:
        assert left == list(dict.fromkeys(current + parts))
    else:
        assert left == [part for part in current if part not in parts]
