"""Kafka's admin client, as far as producers need one: lists, creates, describes, alters and deletes topics, configs,
offsets, quotas, transactions and ACLs.

::

    async with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic(NewTopic("orders", partitions=6))
        await admin.alter_configs(ConfigResource.topic("orders"), {"retention.ms": "3600000"})
        await admin.alter_client_quotas(ClientQuotaEntity(client_id="batch"), {"producer_byte_rate": 1_000_000})

A call makes requests of its arguments, and sends each to the broker that can answer it: any, the controller, the leader
of a partition or a coordinator. Attempts that fail are repeated until ``default.api.timeout.ms``. The files:

    kafka_admin.py        the client: all its calls, with their documentation
    calls/                what the calls do, by subject
    admin_config.py       its configs
    cluster.py, topics.py, configs.py, offsets.py, quotas.py
                          arguments and results, as users and as brokers see them; ACLs are in aioproducer/acls.py
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
from aioproducer.admin.admin_config import AdminConfig
from aioproducer.admin.calls.transactions import TransactionDescription
from aioproducer.admin.cluster import ClusterDescription, Node
from aioproducer.admin.configs import Append, ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym, Subtract
from aioproducer.admin.kafka_admin import KafkaAdmin
from aioproducer.admin.offsets import ListOffsetsResultInfo, OffsetSpec
from aioproducer.admin.quotas import ClientQuotaEntity, EntityName
from aioproducer.admin.topics import NewTopic, TopicDescription
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
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "EntityName",
    "KafkaAdmin",
    "ListOffsetsResultInfo",
    "NewTopic",
    "Node",
    "OffsetSpec",
    "PatternType",
    "ResourceType",
    "Subtract",
    "TopicDescription",
    "TransactionDescription",
]
