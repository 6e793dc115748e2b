"""Type checkers know the configs in the tables: tests/scripts/test_configuration.py compares the text."""

from __future__ import annotations

import ssl
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from aioproducer import ProducerInterceptor
from aioproducer.admin import AdminConfig
from aioproducer.config_types import AdminConfigs, ProducerConfigs, ReaderConfigs, RegistryOptions
from aioproducer.configs.config_def import ConfigKey, checked, table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.reader import ReaderConfig
from aioproducer.schema_registry.client.registry_config import RegistryConfig
from aioproducer.security.oauth.java_classes import LOGIN_HANDLERS, RETRIEVERS, VALIDATORS
from aioproducer.security.password import Password

EXAMPLES: dict[str, list[Any]] = {
    "bearer.auth.token.provider": [print, "aioproducer.OAuthBearerToken"],
    "interceptor.classes": [ProducerInterceptor, [ProducerInterceptor(), print], "aioproducer.ProducerInterceptor"],
    "metric.reporters": ["aioproducer.metrics_topic.MetricsTopicReporter"],
    "partitioner.class": ["aioproducer.RoundRobinPartitioner", max],
    "sasl.login.connect.timeout.ms": [1000, None],
    "sasl.login.read.timeout.ms": [1000, None],
    "sasl.oauth.token.provider": [print, "aioproducer.OAuthBearerToken"],
    "sasl.login.callback.handler.class": [*LOGIN_HANDLERS, None],
    "sasl.oauthbearer.jwt.retriever.class": list(RETRIEVERS),
    "sasl.oauthbearer.jwt.validator.class": list(VALIDATORS),
    "ssl.context": [ssl.create_default_context(), None],
    "ssl.enabled.protocols": ["TLSv1.2,TLSv1.3", ["TLSv1.3"]],
    "ssl.engine.factory.class": [
        ssl.create_default_context,
        type("Factory", (), {"__call__": print}),
        "ssl.SSLContext",
    ],
}


def keys(config_class: type[Any], *without: str) -> set[str]:
    return {row.name.replace(".", "_") for row in table(config_class).values()} - set(without)


@pytest.mark.parametrize(
    ("types", "names"),
    [
        (ProducerConfigs, keys(ProducerConfig, "key_serializer", "value_serializer")),
        (AdminConfigs, keys(AdminConfig)),
        (ReaderConfigs, keys(ReaderConfig, "bootstrap_servers")),
        (RegistryOptions, keys(RegistryConfig, "schema_registry_url")),
    ],
)
def test_every_config_is_there(types: type[Any], names: set[str]) -> None:
    assert set(get_type_hints(types)) == names


def test_bootstrap_servers_is_required_where_kafka_requires_it() -> None:
    required = {"bootstrap_servers"}
    assert [types.__required_keys__ for types in (ProducerConfigs, AdminConfigs)] == [required] * 2
    assert not ReaderConfigs.__required_keys__


def values_of(hint: Any, row: ConfigKey) -> list[Any]:
    """Values that have the type, at least one of each member of a union."""
    if row.name in EXAMPLES:
        return EXAMPLES[row.name]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if hint in (int, float):
        return [row.default]
    if get_args(hint):
        return [value for member in get_args(hint) for value in values_of(member, row)]
    values: dict[Any, list[Any]] = {
        bool: [True, False],
        str: ["text:1"],
        Password: [Password("secret")],
        type(None): [None],
    }
    return values[hint]


@pytest.mark.parametrize(
    ("types", "config_class"),
    [(ProducerConfigs, ProducerConfig), (ReaderConfigs, ReaderConfig), (RegistryOptions, RegistryConfig)],
)
def test_a_value_of_the_type_is_accepted(types: type[Any], config_class: type[Any]) -> None:
    rows = table(config_class)
    for name, hint in get_type_hints(types).items():
        row = rows[name.replace("_", ".")]
        for value in values_of(hint, row):
            checked(row, value)
