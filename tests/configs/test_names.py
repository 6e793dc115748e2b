from __future__ import annotations

import pytest

from aioproducer.admin.admin_config import AdminConfig
from aioproducer.broker.configs.broker_config import BROKER_CONFIGS
from aioproducer.configs.config_def import table
from aioproducer.configs.names import is_dotted, may_show, nearest
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.reader import ReaderConfig
from aioproducer.schema_registry.client.registry_config import RegistryConfig

PRODUCER = table(ProducerConfig)


def test_every_known_name_may_be_shown() -> None:
    for known in (PRODUCER, table(AdminConfig), table(ReaderConfig), table(RegistryConfig), BROKER_CONFIGS):
        assert [name for name in known if not (is_dotted(name) or "." not in name)] == []
        assert all(may_show(name, known) for name in known)


@pytest.mark.parametrize(
    "name",
    [
        "lingr.ms",
        "schema.registry.url",
        "listener.name.sasl-ssl.scram-sha-256.sasl.jaas.config",
        "ack",
        "retry",
        "password",
        "loop",
        "",
    ],
)
def test_a_name_with_a_typo_or_of_another_client_may_be_shown(name: str) -> None:
    assert may_show(name, PRODUCER)


@pytest.mark.parametrize(
    "name",
    [
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2",
        "mighageambmgbyqgsm49ageg",
        "-----BEGIN",
        "hunter",
        "correct-horse-battery-staple",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln",
        "sasl.plain.password=SECRET",
        "sasl.plain.passwordSECRET",
        "sasl.plain.password SECRET",
        "a." * 100 + "a",
        "a." + "b" * 40,
    ],
)
def test_what_may_be_a_secret_may_not(name: str) -> None:
    assert not may_show(name, PRODUCER)


def test_the_nearest_name_is_found_in_any_case() -> None:
    assert nearest("LINGER.MS", PRODUCER) == "linger.ms"
    assert nearest("bootstrapServers", PRODUCER) == "bootstrap.servers"
    assert nearest("topik", ["topic", "writeId"]) == "topic"
    assert nearest("zzz", PRODUCER) is None
