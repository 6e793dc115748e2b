"""Results and errors of single topics, resources and entities in a broker's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from aioproducer.acls import AclBinding
from aioproducer.admin.configs import ConfigResource
from aioproducer.admin.quotas import ClientQuotaEntity
from aioproducer.admin.topics import TopicDescription, description
from aioproducer.errors import KafkaError, error_class, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.metadata import MetadataResponseTopic
from aioproducer.types import TopicPartition

T = TypeVar("T")
K = TypeVar("K", str, ConfigResource, ClientQuotaEntity, TopicPartition, AclBinding)
"""The subject of a request: the name of a topic, a resource, an entity with quotas, a partition, or an ACL."""

Subject = str | ConfigResource | ClientQuotaEntity | TopicPartition | AclBinding


def only(results: Mapping[K, T | KafkaError]) -> T:
    """The only result; raises it if it is an error."""
    (result,) = results.values()
    if isinstance(result, KafkaError):
        raise result
    return result


async def gathered(requests: Iterable[Awaitable[T]]) -> list[T]:
    """All answers; when all have ended, raises the first error."""
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def left_out(subject: Subject) -> KafkaError:
    return KafkaError(f"the broker left {_called(subject)} out of its answer")


def outcome(code: int, message: str | None, subject: Subject | None) -> KafkaError | None:
    """None for success, otherwise the error."""
    return None if code == ErrorCode.NONE else _error(code, message, subject)


def described(name: str, answer: MetadataResponseTopic | None) -> TopicDescription | KafkaError:
    """A topic's description, or its error."""
    if answer is None:
        return left_out(name)
    code = ErrorCode(answer.error_code)
    if code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        return description(name, answer)
    return _error(code, None, name)


def _error(code: int, message: str | None, subject: Subject | None) -> KafkaError:
    text = message or error_class(code).__doc__ or ""
    name = subject.name if isinstance(subject, ConfigResource) else subject
    # Not every message of a broker about a topic names it.
    return error_for(code, text if repr(name) in text else f"{_called(subject)}: {text}")


def _called(subject: Subject | None) -> str:
    match subject:
        case ConfigResource():
            return str(subject)
        case ClientQuotaEntity():
            return f"quotas of {subject}"
        case TopicPartition():
            return f"partition {subject}"
        case AclBinding():
            return f"ACL {subject}"
        case name:
            return f"topic {name!r}"
