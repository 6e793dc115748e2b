"""CreatePartitions: more partitions for topics.

Versions 0 to 3. Simplification: any node does it. A request for more than 10,000 new partitions is a
POLICY_VIOLATION, as with CreateTopics, and adds none. Kafka 4.3 answers UNKNOWN_SERVER_ERROR, and adds 10,000.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.handlers.create_topics import MAX_PARTITIONS_TO_CREATE
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, InvalidRequestException, PolicyViolationException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 3)

_STRICT_VERSION = 3
"""From here on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(
    context: BrokerContext, request: Request, message: CreatePartitionsRequest
) -> Steps[CreatePartitionsResponse]:
    access = Access.of(context, request)
    times = Counter(topic.name for topic in message.topics)
    mutations = context.quotas.mutations(request, strict_from=_STRICT_VERSION)
    too_many = sum(_added(context, topic) for topic in message.topics) > MAX_PARTITIONS_TO_CREATE
    results = []
    for wanted in {topic.name: topic for topic in message.topics}.values():
        result = CreatePartitionsTopicResult(wanted.name, ErrorCode.NONE)
        try:
            if times[wanted.name] > 1:
                raise InvalidRequestException(f"topic {wanted.name!r} is there {times[wanted.name]} times")
            access.check(AclOperation.ALTER, ResourceType.TOPIC, wanted.name)
            if too_many:
                raise PolicyViolationException(f"the request is to add more than {MAX_PARTITIONS_TO_CREATE} partitions")
            assigned = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
            if not message.validate_only:
                mutations.record(_added(context, wanted))
            yield from context.state.creating_partitions(
                wanted.name, wanted.count, assigned, validate_only=message.validate_only
            )
        except ApiException as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
        yield
    return CreatePartitionsResponse(throttle_time_ms=mutations.throttle_ms, results=results)


def _added(context: BrokerContext, wanted: CreatePartitionsTopic) -> int:
    """How many partitions a topic gets; 0 if there is no such topic."""
    topic = context.state.topics.get(wanted.name)
    return 0 if topic is None else max(wanted.count - len(topic.partitions), 0)
