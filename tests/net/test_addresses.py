from __future__ import annotations

import pytest

from aioproducer.errors import ConfigException
from aioproducer.net.addresses import Address, parse_addresses


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost:9092", Address("localhost", 9092), "localhost:9092"),
        ("10.0.0.1:1", Address("10.0.0.1", 1), "10.0.0.1:1"),
        ("[::1]:65535", Address("::1", 65535), "[::1]:65535"),
        ("PLAINTEXT://kafka.example.com:9092", Address("kafka.example.com", 9092), "kafka.example.com:9092"),
    ],
)
def test_host_and_port(text: str, address: Address, shown: str) -> None:
    assert parse_addresses([text]) == [address]
    assert str(address) == shown


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", ":9092", "h:0", "h:65536", "h:-1", "h:٩", "h:9092/", "[]:1"]
)
def test_a_text_that_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ConfigException, match=r"bootstrap\.servers") as raised:
        parse_addresses(["fine:9092", text])
    assert raised.value.value == text


def test_a_host_that_metadata_names_is_shown_in_one_line() -> None:
    assert str(Address("evil\n\x1b[31m", 1)) == r"evil\n\x1b[31m:1"
