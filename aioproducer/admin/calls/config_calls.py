"""The admin client's calls for the configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aioproducer.admin.calls.admin_requests import AdminRequests, distinct
from aioproducer.admin.calls.answers import left_out, outcome
from aioproducer.admin.configs import ConfigChange, ConfigEntry, ConfigResource, alteration, by_node, entry
from aioproducer.errors import KafkaError
from aioproducer.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from aioproducer.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ConfigCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def describe_all_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        answers: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        wanted = distinct(resources)

        for node_id, of_node in by_node(wanted).items():

            async def attempt(node_id: int | None = node_id, of_node: list[ConfigResource] = of_node) -> None:
                request = DescribeConfigsRequest(
                    [DescribeConfigsResource(resource.type, resource.name, None) for resource in of_node],
                    include_synonyms=True,
                )
                response = await self._requests.ask(request, DescribeConfigsResponse, node_id=node_id)
                for result in response.results:
                    resource = ConfigResource(result.resource_type, result.resource_name)
                    error = outcome(result.error_code, result.error_message, resource)
                    answers[resource] = error or {config.name: entry(config) for config in result.configs}

            await self._requests.retry("describing configs", attempt)
        return {resource: answers.get(resource, left_out(resource)) for resource in wanted}

    async def alter_all_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigChange]], *, validate_only: bool
    ) -> dict[ConfigResource, KafkaError | None]:
        results: dict[ConfigResource, KafkaError | None] = {}
        for node_id, of_node in by_node(changes).items():

            async def attempt(
                resources: list[ConfigResource], node_id: int | None = node_id
            ) -> dict[ConfigResource, KafkaError | None]:
                request = IncrementalAlterConfigsRequest(
                    [alteration(resource, changes[resource]) for resource in resources], validate_only
                )
                response = await self._requests.ask(request, IncrementalAlterConfigsResponse, node_id=node_id)
                answers = {}
                for answer in response.responses:
                    resource = ConfigResource(answer.resource_type, answer.resource_name)
                    answers[resource] = outcome(answer.error_code, answer.error_message, resource)
                return answers

            results |= await self._requests.change("altering configs", of_node, attempt)
        return results
