from __future__ import annotations

import pytest

from aioproducer.broker.configs.connection_overrides import (
    connections_by_address,
    host_names,
    max_connections_overrides,
)


def test_addresses_of_both_kinds_and_host_names() -> None:
    text = "10.0.0.1:1, 2001:DB8:0::1:2,Clients.Example:3,my_host:4,,xn--bcher-kva.example:0"
    assert max_connections_overrides(text) == {
        "10.0.0.1": 1,
        "2001:db8::1": 2,
        "clients.example": 3,
        "my_host": 4,
        "xn--bcher-kva.example": 0,
    }
    assert host_names(text) == ["clients.example", "my_host", "xn--bcher-kva.example"]


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.300:1",
        "10.0:1",
        ":1",
        "localhost",
        "localhost:",
        "localhost:-1",
        "localhost:x",
        "a..b:1",
        "a b:1",
        "a/b:1",
        "bücher.example:1",
        f"{'a' * 64}:1",
        f"{'a.' * 126}ab:1",
        "host:9092:1",
        ",".join(f"host{number}:1" for number in range(101)),
    ],
)
def test_neither_an_address_nor_a_host_name(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        max_connections_overrides(text)


def test_a_name_is_all_its_addresses_but_those_that_are_named_themselves() -> None:
    addresses = {"clients.example": ("10.0.0.1", "10.0.0.2", "2001:db8::1"), "gone.example": ("10.0.0.9",)}
    found = connections_by_address("10.0.0.1:1,clients.example:3,unknown.example:4", addresses)
    assert found == {"10.0.0.1": 1, "10.0.0.2": 3, "2001:db8::1": 3}
