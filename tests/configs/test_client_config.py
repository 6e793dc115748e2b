from __future__ import annotations

import pytest

from aioproducer.configs.client_config import client_config
from aioproducer.errors import ConfigException
from aioproducer.net.retrying_client import RetryingConfig


def test_other_clients_have_their_own_configs() -> None:
    made = client_config(RetryingConfig, {"bootstrap_servers": "b:1"}, owner="reader")
    assert (made.max_in_flight_requests_per_connection, made.max_request_size) == (100, 2**20)
    with pytest.raises(ConfigException, match=r"unknown reader config 'linger\.ms'"):
        client_config(RetryingConfig, {"bootstrap_servers": "b:1", "linger.ms": 5}, owner="reader")
