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
        ("KAFKA://host:1", Address("host", 1), "host:1"),
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


@pytest.mark.parametrize(
    "text",
    [
        "user:S3CRET@host:9092",
        "kafka://user:S3CRET@host:9092",
        "PLAINTEXT://user:S3CRET@host:9092",
        "user:S3CRET@h",
        "user:S3CRET,with@comma:1",
        "S3CRET@host:9092",
        "@S3CRET",
    ],
)
def test_a_password_in_an_address_is_never_shown(text: str) -> None:
    with pytest.raises(ConfigException, match=r"host:port, .* sasl\.plain\.username and sasl\.plain\.pass") as raised:
        parse_addresses(["fine:9092", *text.split(",")])
    assert (raised.value.name, raised.value.value) == ("bootstrap.servers", None)
    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize("text", ["kafka://host:9092", "kafka://host", "kafka+ssl://host:9092"])
def test_a_url_is_refused(text: str) -> None:
    with pytest.raises(ConfigException, match=r"which is a URL; give host:port, and set security\.protocol"):
        parse_addresses([text])


def test_a_host_that_metadata_names_is_shown_in_one_line() -> None:
    assert str(Address("evil\n\x1b[31m", 1)) == r"evil\n\x1b[31m:1"
