"""CreatePartitions: more partitions for topics.

Versions 0 to 3. Simplification: done at once, by whichever node is asked.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.broker.context import BrokerContext
from aioproducer.broker.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException, InvalidRequestException
from aioproducer.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 3)

_STRICT_VERSION = 3
"""From here on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(context: BrokerContext, request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in message.topics)
    mutations = context.quotas.mutations(request, strict_from=_STRICT_VERSION)
    results = []
    for wanted in {topic.name: topic for topic in message.topics}.values():
        result = CreatePartitionsTopicResult(wanted.name, ErrorCode.NONE)
        try:
            if times[wanted.name] > 1:
                raise InvalidRequestException(f"topic {wanted.name!r} is there {times[wanted.name]} times")
            assigned = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
            topic = context.state.topics.get(wanted.name)
            if topic is not None and not message.validate_only:
                mutations.record(max(wanted.count - len(topic.partitions), 0))
            context.state.create_partitions(wanted.name, wanted.count, assigned, validate_only=message.validate_only)
        except ApiException as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return CreatePartitionsResponse(throttle_time_ms=mutations.throttle_ms, results=results)
