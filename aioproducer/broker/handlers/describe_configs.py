"""DescribeConfigs: the configs of topics and of this node, and where their values come from.

Versions 1 to 4.

Simplifications: no logger has a level that clients may see or change; the configs of groups are only kept. A config
that the cluster was started with counts as static where it is not the default. A topic config without effect says so in
its documentation, and its broker's config is not there.
"""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.acls import AclOperation
from aioproducer.broker.configs.cluster_configs import ALL_NODES, ConfigEntry, ConfigSource, Synonym
from aioproducer.broker.configs.config_resource_type import ConfigResourceType
from aioproducer.broker.configs.dynamic_configs import DYNAMIC_BROKER_CONFIGS
from aioproducer.broker.configs.resource_configs import Owner
from aioproducer.broker.configs.topic_config import KIP_1269_CONFIGS, TOPIC_CONFIGS_WITHOUT_EFFECT
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.config_resource import check_access, check_node, resource_type
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import validate_topic_name
from aioproducer.configs.config_def import ConfigKey, Type, as_text, checked
from aioproducer.errors import ApiException, UnknownTopicOrPartitionException
from aioproducer.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 4)

_TYPES = {
    Type.BOOLEAN: 1,
    Type.STRING: 2,
    Type.INT: 3,
    Type.LONG: 5,
    Type.DOUBLE: 6,
    Type.LIST: 7,
    Type.CLASS: 8,
    Type.PASSWORD: 9,
}
"""``DescribeConfigsResponse.ConfigType`` of the types that are there."""


def handle(context: BrokerContext, request: Request, message: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    response = DescribeConfigsResponse()
    access = Access.of(context, request)
    # One that is named twice is described once: clients keep one description of it.
    for resource in {(one.resource_type, one.resource_name): one for one in message.resources}.values():
        response.results.append(_describe(context, access, message, resource))
        yield
    return response


def _describe(
    context: BrokerContext, access: Access, message: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        kind = resource_type(resource.resource_type)
        check_access(access, AclOperation.DESCRIBE_CONFIGS, kind, resource.resource_name)
        wanted = frozenset(resource.configuration_keys or ())
        result.configs = [
            _described(entry, kind, message)
            for entry in _entries(context, kind, resource.resource_name)
            if not wanted or entry.key.name in wanted
        ]
    except ApiException as error:
        result.error_code, result.error_message = error.code, str(error)
    return result


def _entries(context: BrokerContext, kind: ConfigResourceType, name: str) -> Iterable[ConfigEntry]:
    configs = context.state.configs
    if kind is ConfigResourceType.TOPIC:
        validate_topic_name(name)
        topic = context.state.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionException(f"there is no topic {name!r}")
        return _known(context, configs.topic_entries(topic.configs, context.node_id))
    if kind.owner is not None:
        return [_kept(kind.owner, row, value) for row, value in context.state.resource_configs.rows(kind.owner, name)]
    if kind is ConfigResourceType.BROKER_LOGGER:
        check_node(context, name)
        return []
    if name == ALL_NODES:
        return configs.default_entries()
    check_node(context, name)
    return _known(context, configs.broker_entries(context.node_id))


def _kept(owner: Owner, row: ConfigKey, value: str | None) -> ConfigEntry:
    source = ConfigSource.GROUP if owner is Owner.GROUP else ConfigSource.CLIENT_METRICS
    own = () if value is None else (Synonym(row.name, as_text(checked(row, value)), source),)
    default = f"group.{row.name}" if owner is Owner.GROUP else row.name
    return ConfigEntry(row, (*own, Synonym(default, as_text(row.default), ConfigSource.DEFAULT)))


def _known(context: BrokerContext, entries: Iterable[ConfigEntry]) -> Iterable[ConfigEntry]:
    """Without those that an old broker has no default for."""
    return [
        entry
        for entry in entries
        if not context.old or entry.key.name not in KIP_1269_CONFIGS or entry.source is ConfigSource.TOPIC
    ]


def _described(
    entry: ConfigEntry, kind: ConfigResourceType, message: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    key = entry.key
    secret = key.type is Type.PASSWORD
    synonyms = entry.synonyms if message.include_synonyms else ()
    return DescribeConfigsResourceResult(
        key.name,
        None if secret else entry.value,
        # Those of a single listener may change, too. Kafka says that they cannot: it looks for the full name.
        read_only=kind is ConfigResourceType.BROKER and key.name not in DYNAMIC_BROKER_CONFIGS,
        config_source=entry.source,
        is_sensitive=secret,
        synonyms=[DescribeConfigsSynonym(name, None if secret else value, of) for name, value, of in synonyms],
        config_type=_TYPES[key.type],
        documentation=_documentation(key, kind) if message.include_documentation else None,
    )


def _documentation(key: ConfigKey, kind: ConfigResourceType) -> str:
    if kind is ConfigResourceType.TOPIC and key.name in TOPIC_CONFIGS_WITHOUT_EFFECT:
        return f"Without effect in the embedded broker. {key.doc}"
    return key.doc
