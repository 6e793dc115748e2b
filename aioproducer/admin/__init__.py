"""Topics, configs, offsets, quotas, transactions, ACLs: list, create, describe, alter, delete. Kafka's admin client, as
far as a producer's surroundings need it.

::

    async with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic(NewTopic("orders", partitions=6))
        await admin.alter_configs(ConfigResource.topic("orders"), {"retention.ms": "3600000"})
        await admin.alter_client_quotas(ClientQuotaEntity(client_id="batch"), {"producer_byte_rate": 1_000_000})

``kafka_admin.py`` is the client, and its calls are in ``topic_calls.py``, ``config_calls.py``, ``offset_calls.py``,
``quota_calls.py``, ``transaction_calls.py`` and ``acl_calls.py``, made of what is in ``admin_calls.py``. ``topics.py``,
``configs.py``, ``offsets.py``, ``groups.py``, ``quotas.py`` and ``transactions.py`` are what is asked for, as is
``aioproducer/acls.py``; ``answers.py`` is what comes of it.
"""

from __future__ import annotations

from aioproducer.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aioproducer.admin.admin_calls import AdminConfig
from aioproducer.admin.configs import Append, ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym, Subtract
from aioproducer.admin.kafka_admin import KafkaAdmin
from aioproducer.admin.offsets import ListOffsetsResultInfo, OffsetSpec
from aioproducer.admin.quotas import ClientQuotaEntity, EntityName
from aioproducer.admin.topics import NewTopic, TopicDescription
from aioproducer.admin.transactions import TransactionDescription
from aioproducer.config_types import AdminConfigs

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminConfig",
    "AdminConfigs",
    "Append",
    "ClientQuotaEntity",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "EntityName",
    "KafkaAdmin",
    "ListOffsetsResultInfo",
    "NewTopic",
    "OffsetSpec",
    "PatternType",
    "ResourceType",
    "Subtract",
    "TopicDescription",
    "TransactionDescription",
]
