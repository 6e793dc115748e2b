"""CreateTopics: create topics, or say whether they could be.

Versions 2 to 7.

Simplifications: any node does it, at once; no policies.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import NewTopic, Topic
from aioproducer.errors import (
    ApiException,
    InvalidConfigurationException,
    InvalidReplicaAssignmentException,
    InvalidRequestException,
    PolicyViolationException,
    TopicAuthorizationException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(2, 7)

MAX_PARTITIONS_TO_CREATE = 10_000
"""By one request, as in Kafka (``MAX_PARTITIONS_PER_BATCH``)."""

_STRICT_VERSION = 6
"""From here on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(context: BrokerContext, request: Request, message: CreateTopicsRequest) -> Steps[CreateTopicsResponse]:
    times = Counter(topic.name for topic in message.topics)
    mutations = context.quotas.mutations(request, strict_from=_STRICT_VERSION)
    too_many = sum(_count(context, topic) for topic in message.topics) > MAX_PARTITIONS_TO_CREATE
    access = Access.of(context, request)
    results = []
    for wanted in {topic.name: topic for topic in message.topics}.values():
        try:
            if times[wanted.name] > 1:
                raise InvalidRequestException(f"topic {wanted.name!r} is there {times[wanted.name]} times")
            if not access.may_create(wanted.name):
                raise TopicAuthorizationException(f"topic {wanted.name!r} may not be created by this principal")
            if too_many:
                raise PolicyViolationException(
                    f"the request is to create more than {MAX_PARTITIONS_TO_CREATE} partitions"
                )
            new = _new_topic(wanted)
            if not message.validate_only and new.name not in context.state.topics:
                mutations.record(_count(context, wanted))
            topic = yield from context.state.creating_topic(new, validate_only=message.validate_only)
            may_describe = access.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name, asked_for=False)
            results.append(_describe(context, topic) if may_describe else _created(topic))
        except ApiException as error:
            results.append(CreatableTopicResult(wanted.name, error_code=error.code, error_message=str(error)))
        yield
    return CreateTopicsResponse(throttle_time_ms=mutations.throttle_ms, topics=results)


def _count(context: BrokerContext, wanted: CreatableTopic) -> int:
    """How many partitions it is to have; 0 for a number that is none."""
    if wanted.assignments:
        return len(wanted.assignments)
    return max(context.config.num_partitions if wanted.num_partitions == -1 else wanted.num_partitions, 0)


def _new_topic(wanted: CreatableTopic) -> NewTopic:
    configs = {}
    for config in wanted.configs:
        if config.value is None:
            raise InvalidConfigurationException(f"config {config.name!r} has no value")
        configs[config.name] = config.value
    if wanted.assignments and (wanted.num_partitions != -1 or wanted.replication_factor != -1):
        raise InvalidRequestException("with replica assignments, partitions and replication factor must be -1")
    assigned = {assignment.partition_index: assignment.broker_ids for assignment in wanted.assignments}
    if sorted(assigned) != list(range(len(wanted.assignments))):
        raise InvalidReplicaAssignmentException(
            f"replicas are assigned to partitions {sorted(assigned)}, not to 0, 1, …"
        )
    assignments = [assigned[index] for index in range(len(assigned))]
    return NewTopic(wanted.name, wanted.num_partitions, wanted.replication_factor, assignments, configs)


def _created(topic: Topic) -> CreatableTopicResult:
    """The result for a client that may not describe the configs of the topic."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return CreatableTopicResult(topic.name, topic.id, ErrorCode.NONE, None, topic_config_error_code=code)


def _describe(context: BrokerContext, topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        topic.name,
        topic.id,
        ErrorCode.NONE,
        None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(entry.key.name, entry.value, config_source=entry.source)
            for entry in context.state.configs.topic_entries(topic.configs, context.node_id)
        ],
    )
