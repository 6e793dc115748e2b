"""The admin client's life. Its calls are in ``topic_calls``, ``config_calls``, ``offset_calls`` and ``quota_calls``."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from aioproducer.admin.admin_calls import AdminConfig
from aioproducer.admin.config_calls import ConfigCalls
from aioproducer.admin.offset_calls import OffsetCalls
from aioproducer.admin.quota_calls import QuotaCalls
from aioproducer.admin.topic_calls import TopicCalls
from aioproducer.client_config import client_config
from aioproducer.config_def import read_properties
from aioproducer.errors import IllegalStateException
from aioproducer.net.addresses import parse_addresses
from aioproducer.net.coordinators import Coordinators
from aioproducer.net.retrying_client import RetryingClient


class KafkaAdmin(TopicCalls, ConfigCalls, OffsetCalls, QuotaCalls):
    """Describes and changes the topics, configs and quotas of a cluster.

    A call for one topic or resource raises what went wrong with it (TopicExistsException,
    UnknownTopicOrPartitionException, InvalidConfigurationException, …). A call for several returns each outcome,
    with an error in the place of a result, so one failure does not hide the others. It raises only what concerns all:
    TimeoutException after default.api.timeout.ms. Whether a change that timed out was made is not known.

    ``config`` takes the names of :class:`AdminConfig`, in snake_case or dotted; ConfigException names a wrong one. An
    admin client belongs to the event loop it was started in.
    """

    def __init__(self, **config: Any) -> None:
        self._config = client_config(AdminConfig, config, owner="admin")
        parse_addresses(self._config.bootstrap_servers)
        self._retrying: RetryingClient | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """An admin client from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        return cls(**(read_properties(config) if isinstance(config, str) else config))

    async def start(self) -> None:
        """Binds to the running loop and looks for the cluster. Starting twice is harmless."""
        if self._retrying is None:
            self._retrying = RetryingClient(self._config, self._config.default_api_timeout_ms)
            self._coordinators = Coordinators(self._retrying.client)

    async def close(self) -> None:
        """Ends the client's tasks and connections; calls that still wait for an answer raise IllegalStateException."""
        if self._retrying is not None:
            await self._retrying.close()
            self._retrying = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _client(self) -> RetryingClient:
        if self._retrying is None:
            raise IllegalStateException("the admin client is not started: use 'async with' or 'await start()'")
        return self._retrying
