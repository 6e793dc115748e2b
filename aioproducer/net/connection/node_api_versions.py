"""The API versions of one broker, from its answer to ApiVersions at each connection (KIP-35)."""

from __future__ import annotations

from typing import final

from aioproducer.errors import UnsupportedVersionException
from aioproducer.protocol.messages.api_versions import ApiVersionsResponse
from aioproducer.protocol.schema import Request


@final
class NodeApiVersions:
    """Kafka's class of this name. Empty until the broker has answered; ``node`` is its name in messages."""

    def __init__(self, node: str, response: ApiVersionsResponse | None = None) -> None:
        self._node = node
        self._versions: dict[int, tuple[int, int]] = {}
        self._features: dict[str, int] = {}
        if response is not None:
            self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
            self._features = {feature.name: feature.max_version_level for feature in response.finalized_features}

    def known(self) -> bool:
        """Whether the broker was asked."""
        return len(self._versions) > 0

    def newest(self, api_key: int) -> int:
        """The newest version of an API that the broker speaks; -1 if it does not."""
        return self._versions.get(api_key, (0, -1))[1]

    def latest_usable_version(self, request: type[Request], at_most: int | None = None) -> int:
        """The newest version that both sides speak; UnsupportedVersionException if there is none.

        An unstable one only if ``at_most`` allows it.
        """
        newest = request.MAX_VERSION if at_most is None else min(at_most, request.VALID_VERSIONS.high)
        low, high = self._versions.get(request.API_KEY, (0, -1))
        chosen = min(newest, high)
        if chosen < max(low, request.MIN_VERSION):
            raise UnsupportedVersionException(
                f"{self._node} speaks {request.API_KEY.name} {low} to {high}, "
                f"and {request.MIN_VERSION} to {newest} would be needed"
                if high >= low
                else f"{self._node} does not speak {request.API_KEY.name}"
            )
        return chosen

    def finalized(self, feature: str) -> int:
        """The level of a feature that the cluster has finalized (KIP-584); 0 if it has none."""
        return self._features.get(feature, 0)
