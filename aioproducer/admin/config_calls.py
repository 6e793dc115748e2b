"""The admin client's calls for the configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.answers import left_out, only, outcome
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


class ConfigCalls(AdminCalls):
    """To describe and change configs."""

    async def describe_configs(self, resource: ConfigResource) -> dict[str, ConfigEntry]:
        """All configs of a topic or a broker, by name."""
        return only(await self.describe_all_configs([resource]))

    async def alter_configs(
        self, resource: ConfigResource, changes: Mapping[str, ConfigChange], *, validate_only: bool = False
    ) -> None:
        """Changes configs of a running cluster: a text sets one, None resets it to its default, Append and Subtract
        change a list. Either all of the changes are made or none; ``validate_only`` only checks whether they could be.
        """
        only(await self.alter_all_configs({resource: changes}, validate_only=validate_only))

    async def describe_all_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """The configs of topics and brokers, or errors in their place."""
        answers: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        wanted = self._distinct(resources, str)

        for node_id, of_node in by_node(wanted).items():

            async def attempt(node_id: int | None = node_id, of_node: list[ConfigResource] = of_node) -> None:
                request = DescribeConfigsRequest(
                    [DescribeConfigsResource(resource.type, resource.name, None) for resource in of_node],
                    include_synonyms=True,
                )
                response = await self._client().client.request(request, DescribeConfigsResponse, node_id=node_id)
                for told in response.results:
                    resource = ConfigResource(told.resource_type, told.resource_name)
                    error = outcome(told.error_code, told.error_message, resource)
                    answers[resource] = error or {config.name: entry(config) for config in told.configs}

            await self._client().retry("describing configs", attempt)
        return {resource: answers.get(resource, left_out(resource)) for resource in wanted}

    async def alter_all_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        """As :meth:`alter_configs`; None for each resource that was changed, or else its error."""
        results: dict[ConfigResource, KafkaError | None] = {}
        for node_id, of_node in by_node(changes).items():

            async def attempt(
                resources: list[ConfigResource], node_id: int | None = node_id
            ) -> dict[ConfigResource, KafkaError | None]:
                request = IncrementalAlterConfigsRequest(
                    [alteration(resource, changes[resource]) for resource in resources], validate_only
                )
                client = self._client().client
                response = await client.request(request, IncrementalAlterConfigsResponse, node_id=node_id)
                answers = {}
                for answer in response.responses:
                    resource = ConfigResource(answer.resource_type, answer.resource_name)
                    answers[resource] = outcome(answer.error_code, answer.error_message, resource)
                return answers

            results |= await self._change("altering configs", of_node, attempt)
        return results
