"""Kafka's admin client, as far as producers need one: lists, creates, describes, alters and deletes topics, configs,
offsets, quotas, transactions and ACLs.

::

    async with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic(NewTopic("orders", partitions=6))
        await admin.alter_configs(ConfigResource.topic("orders"), {"retention.ms": "3600000"})
        await admin.alter_client_quotas(ClientQuotaEntity(client_id="batch"), {"producer_byte_rate": 1_000_000})

The files:

    kafka_admin.py        the client: all its calls, with their documentation
    admin_config.py       its configs
    admin_requests.py     sends requests to the right brokers, and repeats the attempts that fail
    topic_calls.py, config_calls.py, offset_calls.py, quota_calls.py, transaction_calls.py, acl_calls.py
                          what the calls do, by subject
    topics.py, configs.py, offsets.py, quotas.py
                          their arguments and results, as users and as brokers see them; ACLs are in aioproducer/acls.py
    groups.py, transactions.py
                          requests to the coordinators of groups and of transactions
    answers.py            results and errors in a broker's answer
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
