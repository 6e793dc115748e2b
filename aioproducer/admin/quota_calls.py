"""The admin client's calls for quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping

from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.answers import only, outcome
from aioproducer.admin.quotas import ClientQuotaEntity, Wanted, conditions, quota_changes
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, error_for
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from aioproducer.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class QuotaCalls(AdminCalls):
    """To describe and change the quotas of clients."""

    async def describe_client_quotas(
        self, *, user: Wanted = None, client_id: Wanted = None, ip: Wanted = None, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas of all entities that meet every condition: a name, ``EntityName.DEFAULT`` or ``ANY``. With
        ``strict``, only entities that consist of nothing but what the conditions name.
        """
        request = DescribeClientQuotasRequest(conditions(user, client_id, ip), strict)

        async def attempt() -> dict[ClientQuotaEntity, dict[str, float]]:
            response = await self._client().client.request(request, DescribeClientQuotasResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message or "describing client quotas")
            return {
                ClientQuotaEntity.of(entry.entity): {quota.key: quota.value for quota in entry.values}
                for entry in response.entries or ()
            }

        return await self._client().retry("describing client quotas", attempt)

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
        """As :meth:`alter_client_quotas`; None for each entity that was changed, or else its error."""

        async def attempt(entities: list[ClientQuotaEntity]) -> dict[ClientQuotaEntity, KafkaError | None]:
            entries = [quota_changes(entity, changes[entity]) for entity in entities]
            request = AlterClientQuotasRequest(entries, validate_only)
            node_id = await self._controller()
            response = await self._client().client.request(request, AlterClientQuotasResponse, node_id=node_id)
            told = [(ClientQuotaEntity.of(entry.entity), entry) for entry in response.entries]
            return {entity: outcome(entry.error_code, entry.error_message, entity) for entity, entry in told}

        return await self._change("altering client quotas", list(changes), attempt)
