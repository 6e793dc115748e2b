"""The admin client's calls for quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping

from aioproducer.admin.calls.admin_requests import AdminRequests
from aioproducer.admin.calls.answers import outcome
from aioproducer.admin.quotas import ClientQuotaEntity, Wanted, conditions, quota_changes
from aioproducer.errors import KafkaError, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from aioproducer.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class QuotaCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def describe_client_quotas(
        self, *, user: Wanted, client_id: Wanted, ip: Wanted, strict: bool
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        request = DescribeClientQuotasRequest(conditions(user, client_id, ip), strict)

        async def attempt() -> dict[ClientQuotaEntity, dict[str, float]]:
            response = await self._requests.ask(request, DescribeClientQuotasResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message or "describing client quotas")
            return {
                ClientQuotaEntity.of(entry.entity): {quota.key: quota.value for quota in entry.values}
                for entry in response.entries or ()
            }

        return await self._requests.retry("describing client quotas", attempt)

    async def alter_all_client_quotas(
        self, changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool
    ) -> dict[ClientQuotaEntity, KafkaError | None]:
        async def attempt(entities: list[ClientQuotaEntity]) -> dict[ClientQuotaEntity, KafkaError | None]:
            entries = [quota_changes(entity, changes[entity]) for entity in entities]
            request = AlterClientQuotasRequest(entries, validate_only)
            response = await self._requests.ask_controller(request, AlterClientQuotasResponse)
            answered = [(ClientQuotaEntity.of(entry.entity), entry) for entry in response.entries]
            return {entity: outcome(entry.error_code, entry.error_message, entity) for entity, entry in answered}

        return await self._requests.change("altering client quotas", list(changes), attempt)
