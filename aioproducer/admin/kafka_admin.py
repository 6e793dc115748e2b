"""The admin client as its users see it: every call with its documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self, Unpack

from aioproducer.acls import AclBinding, AclBindingFilter
from aioproducer.admin.admin_config import AdminConfig
from aioproducer.admin.calls.acl_calls import AclCalls
from aioproducer.admin.calls.admin_requests import AdminRequests
from aioproducer.admin.calls.answers import only
from aioproducer.admin.calls.config_calls import ConfigCalls
from aioproducer.admin.calls.offset_calls import OffsetCalls
from aioproducer.admin.calls.quota_calls import QuotaCalls
from aioproducer.admin.calls.topic_calls import TopicCalls
from aioproducer.admin.calls.transaction_calls import TransactionCalls
from aioproducer.admin.calls.transactions import TransactionDescription
from aioproducer.admin.cluster import ClusterDescription
from aioproducer.admin.configs import ConfigChange, ConfigEntry, ConfigResource
from aioproducer.admin.offsets import IsolationLevel, ListOffsetsResultInfo, OffsetSpec
from aioproducer.admin.quotas import ClientQuotaEntity, Wanted
from aioproducer.admin.topics import NewTopic, TopicDescription
from aioproducer.config_types import AdminConfigs
from aioproducer.configs.client_config import client_config
from aioproducer.configs.properties import given_configs
from aioproducer.errors import KafkaError
from aioproducer.net.client_lifecycle import ClientLifecycle
from aioproducer.types import OffsetAndMetadata, TopicPartition

_ALL_ACLS = AclBindingFilter()


class KafkaAdmin(ClientLifecycle[AdminConfig]):
    """Describes and changes the topics, configs, quotas, transactions and ACLs of a cluster.

    A call for one topic or resource raises its error (TopicExistsException, UnknownTopicOrPartitionException,
    InvalidConfigurationException, …). A call for several returns each outcome, with an error in the place of a result,
    so one failure does not hide the others. It raises only errors that concern all: TimeoutException after
    default.api.timeout.ms. A change that timed out may have been made.

    ``config`` takes the names of :class:`AdminConfig`, in snake_case or dotted; ConfigException names a wrong one. An
    admin client belongs to the event loop it was started in.
    """

    def __init__(self, **config: Unpack[AdminConfigs]) -> None:
        super().__init__(client_config(AdminConfig, config, owner="admin"), "admin client")
        requests = AdminRequests(self._config, self._client)
        self._topic_calls = TopicCalls(requests)
        self._config_calls = ConfigCalls(requests)
        self._offset_calls = OffsetCalls(requests)
        self._quota_calls = QuotaCalls(requests)
        self._transaction_calls = TransactionCalls(requests)
        self._acl_calls = AclCalls(requests)

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """An admin client from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        return cls(**given_configs(config))

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, its brokers and its controller."""
        return await self._topic_calls.describe_cluster()

    # Topics

    async def create_topic(self, topic: NewTopic) -> None:
        """Creates a topic. The controller knows it at once, every broker a moment later."""
        only(await self.create_topics([topic]))

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        only(await self.delete_topics([name]))

    async def describe_topic(self, name: str) -> TopicDescription:
        """A topic's partitions, leaders and replicas."""
        return only(await self.describe_topics([name]))

    async def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, KafkaError | None]:
        """Creates topics; by name, None for each that was created, or else its error."""
        return await self._topic_calls.create_topics(topics)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Deletes topics with all their records; by name, None for each that was deleted, or else its error."""
        return await self._topic_calls.delete_topics(names)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        """Describes topics; by name, each description, or else its error."""
        return await self._topic_calls.describe_topics(names)

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicDescription]:
        """Every topic of the cluster by name; Kafka's internal ones only with ``internal``."""
        return await self._topic_calls.list_topics(internal=internal)

    # Configs

    async def describe_configs(self, resource: ConfigResource) -> dict[str, ConfigEntry]:
        """All configs of a topic or a broker, by name."""
        return only(await self.describe_all_configs([resource]))

    async def alter_configs(
        self, resource: ConfigResource, changes: Mapping[str, ConfigChange], *, validate_only: bool = False
    ) -> None:
        """Changes configs of a running cluster: a text sets one, None resets it to its default, Append and Subtract
        change a list. Either all changes are made or none. ``validate_only`` checks them without making them.
        """
        only(await self.alter_all_configs({resource: changes}, validate_only=validate_only))

    async def describe_all_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """The configs of topics and brokers; by resource, all its configs, or else its error."""
        return await self._config_calls.describe_all_configs(resources)

    async def alter_all_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        """As :meth:`alter_configs` for several resources; None for each that was changed, or else its error."""
        return await self._config_calls.alter_all_configs(changes, validate_only=validate_only)

    # Offsets

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        """The offsets of partitions; by partition, its offset, or else its error. Each leader gets one request."""
        return await self._offset_calls.list_offsets(specs, isolation_level=isolation_level)

    async def list_groups(self, *, without_members: bool = False) -> list[str]:
        """The ids of all groups that this client may see, in order.

        ``without_members`` leaves out groups that have members; groups whose offsets a transaction commits often have
        none. Brokers before 2.6 cannot filter and list every group.
        """
        return await self._offset_calls.list_groups(without_members=without_members)

    async def list_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed for these partitions, or for all; None where it has committed nothing.

        With ``require_stable`` the call waits until no open transaction has offsets to commit there (KIP-447).
        """
        found = await self.list_all_consumer_group_offsets({group: partitions}, require_stable=require_stable)
        return found[group]

    async def list_all_consumer_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool = False
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """As :meth:`list_consumer_group_offsets` for several groups, with one request to each coordinator (KIP-709).

        More than one group needs brokers of 3.0 or newer.
        """
        return await self._offset_calls.list_all_consumer_group_offsets(groups, require_stable=require_stable)

    # Quotas

    async def describe_client_quotas(
        self, *, user: Wanted = None, client_id: Wanted = None, ip: Wanted = None, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas of all entities that meet every condition: a name, ``EntityName.DEFAULT`` or ``ANY``. With
        ``strict``, only entities that consist of nothing but what the conditions name.
        """
        return await self._quota_calls.describe_client_quotas(user=user, client_id=client_id, ip=ip, strict=strict)

    async def alter_client_quotas(
        self, entity: ClientQuotaEntity, quotas: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """Sets quotas; None removes one. Either all changes are made or none. ``producer_byte_rate`` and
        ``consumer_byte_rate`` are bytes per second at each broker, ``request_percentage`` is percent of one of its
        threads, ``controller_mutation_rate`` is partitions per second. An ip has ``connection_creation_rate``,
        connections per second.
        """
        only(await self.alter_all_client_quotas({entity: quotas}, validate_only=validate_only))

    async def alter_all_client_quotas(
        self, changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> dict[ClientQuotaEntity, KafkaError | None]:
        """As :meth:`alter_client_quotas` for several entities; None for each that was changed, or else its error."""
        return await self._quota_calls.alter_all_client_quotas(changes, validate_only=validate_only)

    # Transactions

    async def list_transactions(self, *, states: Sequence[str] = ()) -> list[str]:
        """The transactional ids that this client may see, in order; with ``states``, only those in one of these states.

        Needs brokers of 3.0 or newer.
        """
        return await self._transaction_calls.list_transactions(states=states)

    async def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription | None]:
        """What coordinators know of transactional ids; None for an id that they do not know.

        Needs brokers of 3.0 or newer.
        """
        return await self._transaction_calls.describe_transactions(transactional_ids)

    async def end_transaction(
        self, transactional_id: str, identity: tuple[int, int], *, committed: bool, second_protocol: bool
    ) -> None:
        """Commits or aborts the transaction that a producer with this id and epoch has left open.

        ``second_protocol``: the producer spoke the transaction protocol of KIP-890. Ending a transaction twice in the
        same way is harmless. Raises InvalidTxnStateException, ProducerFencedException, InvalidProducerEpochException or
        InvalidPidMappingException if the transaction has ended and the coordinator no longer knows that it ended in
        this way.
        """
        await self._transaction_calls.end_transaction(
            transactional_id, identity, committed=committed, second_protocol=second_protocol
        )

    async def fence_producer(self, transactional_id: str, identity: tuple[int, int], timeout_ms: int) -> None:
        """Makes the producer with this id and epoch unusable. Its open transaction, if there is one, is aborted.

        ``timeout_ms`` is the time-out of transactions, within what brokers allow. Raises ProducerFencedException if
        another producer has taken over since. Needs brokers of 2.5 or newer.
        """
        await self._transaction_calls.fence_producer(transactional_id, identity, timeout_ms)

    # ACLs. Brokers without an authorizer answer SecurityDisabledException

    async def describe_acls(self, wanted: AclBindingFilter = _ALL_ACLS) -> list[AclBinding]:
        """The ACLs that match. Without a filter, all of them."""
        return await self._acl_calls.describe_acls(wanted)

    async def create_acl(self, acl: AclBinding) -> None:
        """Allows or denies an operation. Creating an ACL that exists is no error."""
        only(await self.create_acls([acl]))

    async def create_acls(self, acls: Iterable[AclBinding]) -> dict[AclBinding, KafkaError | None]:
        """As :meth:`create_acl` for several ACLs; None for each that exists now, or else its error."""
        return await self._acl_calls.create_acls(acls)

    async def delete_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """Deletes the ACLs that match, and returns them.

        ACLs that an earlier, unanswered attempt deleted are missing in the result.
        """
        return await self._acl_calls.delete_acls(wanted)
