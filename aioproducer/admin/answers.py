"""Results and errors of single topics, resources and entities in a broker's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from aioproducer.acls import AclBinding
from aioproducer.admin.configs import ConfigResource
from aioproducer.admin.quotas import ClientQuotaEntity
from aioproducer.admin.topics import TopicDescription, description
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, error_class, error_for
from aioproducer.protocol.messages.metadata import MetadataResponseTopic
from aioproducer.types import TopicPartition

T = TypeVar("T")
K = TypeVar("K", str, ConfigResource, ClientQuotaEntity, TopicPartition, AclBinding)
"""What is asked about: the name of a topic, a resource, who has quotas, a partition, or an ACL."""

Asked = str | ConfigResource | ClientQuotaEntity | TopicPartition | AclBinding


def only(results: Mapping[K, T | KafkaError]) -> T:
    """What became of the one that was asked for."""
    (result,) = results.values()
    if isinstance(result, KafkaError):
        raise result
    return result


def left_out(asked: Asked) -> KafkaError:
    return KafkaError(f"the broker left {_called(asked)} out of its answer")


def outcome(code: int, message: str | None, asked: Asked | None) -> KafkaError | None:
    """None for success, or else the error."""
    return None if code == ErrorCode.NONE else _error(code, message, asked)


def described(name: str, answer: MetadataResponseTopic | None) -> TopicDescription | KafkaError:
    """A topic as it was told of."""
    if answer is None:
        return left_out(name)
    code = ErrorCode(answer.error_code)
    if code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        return description(name, answer)
    return _error(code, None, name)


def _error(code: int, message: str | None, asked: Asked | None) -> KafkaError:
    text = message or error_class(code).__doc__ or ""
    name = asked.name if isinstance(asked, ConfigResource) else asked
    # Not all that brokers say about a topic names it.
    return error_for(code, text if repr(name) in text else f"{_called(asked)}: {text}")


def _called(asked: Asked | None) -> str:
    match asked:
        case ConfigResource():
            return str(asked)
        case ClientQuotaEntity():
            return f"quotas of {asked}"
        case TopicPartition():
            return f"partition {asked}"
        case AclBinding():
            return f"ACL {asked}"
        case name:
            return f"topic {name!r}"
