from __future__ import annotations

import re
from typing import Any

import pytest

from aioproducer.protocol.api_key import ApiKey


@pytest.mark.timeout(660)  # the first run of all fetches Kafka
def test_keys_are_kafkas(kafka_specs: dict[str, Any]) -> None:
    requests = (spec for spec in kafka_specs.values() if spec["type"] == "request")
    words = {spec["apiKey"]: spec["name"].removesuffix("Request") for spec in requests}
    names = {key: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper() for key, name in words.items()}
    assert {key.value: key.name for key in ApiKey} == names
