"""The admin client. Its calls are in ``topic_calls``, ``config_calls``, ``offset_calls``, ``quota_calls``,
``transaction_calls`` and ``acl_calls``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, Unpack

from aioproducer.admin.acl_calls import AclCalls
from aioproducer.admin.admin_calls import AdminConfig
from aioproducer.admin.config_calls import ConfigCalls
from aioproducer.admin.offset_calls import OffsetCalls
from aioproducer.admin.quota_calls import QuotaCalls
from aioproducer.admin.topic_calls import TopicCalls
from aioproducer.admin.transaction_calls import TransactionCalls
from aioproducer.config_types import AdminConfigs
from aioproducer.configs.client_config import client_config
from aioproducer.configs.config_def import read_properties


class KafkaAdmin(TopicCalls, ConfigCalls, OffsetCalls, QuotaCalls, TransactionCalls, AclCalls):
    """Describes and changes the topics, configs, quotas, transactions and ACLs of a cluster.

    A call for one topic or resource raises what went wrong with it (TopicExistsException,
    UnknownTopicOrPartitionException, InvalidConfigurationException, …). A call for several returns each outcome,
    with an error in the place of a result, so one failure does not hide the others. It raises only what concerns all:
    TimeoutException after default.api.timeout.ms. Whether a change that timed out was made is not known.

    ``config`` takes the names of :class:`AdminConfig`, in snake_case or dotted; ConfigException names a wrong one. An
    admin client belongs to the event loop it was started in.
    """

    def __init__(self, **config: Unpack[AdminConfigs]) -> None:
        super().__init__(client_config(AdminConfig, config, owner="admin"), "admin client")

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """An admin client from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        given: Mapping[str, Any] = read_properties(config) if isinstance(config, str) else config
        return cls(**given)
