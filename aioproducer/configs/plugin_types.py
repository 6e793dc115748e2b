"""Types of configs that name the user's code: an object, a class, the import path of either, or a callable."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aioproducer.metrics.reporter import MetricsReporter
from aioproducer.partitioners import Partitioner
from aioproducer.record_metadata import RecordMetadata
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.types import Headers, ProducerRecord, TopicPartition, TopicPartitions

PartitionerLike = (
    Partitioner | type[Partitioner] | Callable[[str, Any, bytes | None, Any, bytes | None, TopicPartitions], int] | str
)
"""What ``partitioner.class`` may be."""


class _OnSend(Protocol):
    def on_send(self, record: ProducerRecord, /) -> ProducerRecord: ...


class _OnAcknowledgement(Protocol):
    def on_acknowledgement(
        self, metadata: RecordMetadata, error: BaseException | None, headers: Headers, /
    ) -> object: ...


class _OnSendError(Protocol):
    def on_send_error(
        self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException, /
    ) -> object: ...


InterceptorLike = (
    _OnSend
    | _OnAcknowledgement
    | _OnSendError
    | type[_OnSend]
    | type[_OnAcknowledgement]
    | type[_OnSendError]
    | Callable[[ProducerRecord], ProducerRecord]
    | str
)
"""One of ``interceptor.classes``: it has some of the methods of a ``ProducerInterceptor``."""

ReporterLike = MetricsReporter | type[MetricsReporter] | str
"""One of ``metric.reporters``."""

_Token = OAuthBearerToken | str


class _HasToken(Protocol):
    def token(self) -> _Token | Awaitable[_Token]: ...


TokenProviderLike = Callable[[], _Token] | Callable[[], Awaitable[_Token]] | _HasToken | type[_HasToken] | str
"""What ``sasl.oauth.token.provider`` may be; a str is the import path of one."""


class _MakesContexts(Protocol):
    def __call__(self) -> ssl.SSLContext: ...


ContextFactoryLike = Callable[[], ssl.SSLContext] | type[_MakesContexts] | str
"""What ``ssl.engine.factory.class`` may be; a class has objects that are called; a str is the import path of one."""
