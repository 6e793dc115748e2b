"""Releases of Kafka, as far as a producer notices them, and rolling upgrades from one to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from aioproducer.broker.handlers.api_versions import TRANSACTION_VERSION
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

Release = Mapping[int, int]
"""The newest version of each API that a broker supports; APIs that are not listed have no limit."""

_APIS = (
    ApiKey.PRODUCE,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
)
NEWEST: Release = {}
BEFORE_KIP_1269: Release = {ApiKey.PRODUCE: 13}
OLD: tuple[Release, ...] = tuple(
    dict(zip(_APIS, versions, strict=True))
    for versions in (
        (7, 7, 2, 3, 1, 2),  # Kafka 2.1
        (8, 9, 2, 3, 1, 2),  # 2.4
        (9, 12, 4, 4, 3, 3),  # 3.3
        (10, 12, 4, 4, 3, 3),  # 3.7
    )
)
"""Releases with only the first protocol of transactions."""

_WITH_THE_SECOND = (NEWEST, BEFORE_KIP_1269)


class Releases:
    """The release that each node announces. The cluster itself is of the newest release; nodes announce fewer versions.

    All nodes begin with ``first``. With ``upgrades`` the second protocol of transactions is finalized when all nodes
    know it; after that no node is replaced by one that does not.
    """

    def __init__(self, first: Release = NEWEST, *, upgrades: bool = False) -> None:
        self._first = first
        self._of: dict[int, Release] = {}
        self._finalized = not upgrades

    def newest(self, node_id: int, api_key: int) -> int:
        """The newest version of an API that the node supports."""
        return self._of.get(node_id, self._first).get(api_key, 1 << 15)

    def choose(self, random: Random) -> Release:
        """A release to which a node may change now."""
        return random.choice(_WITH_THE_SECOND if self._finalized else (*_WITH_THE_SECOND, *OLD))

    def replaced(self, node_id: int, release: Release, nodes: Iterable[int]) -> None:
        """Called while the node is stopped; ``nodes`` are all nodes of the cluster."""
        self._of[node_id] = release
        if all(self._of.get(node, self._first) in _WITH_THE_SECOND for node in nodes):
            self._finalized = True

    def limit_response(self, node_id: int, response: ApiVersionsResponse) -> None:
        """Reduces the answer of a node to what its release supports."""
        response.api_keys = [
            ApiVersion(api.api_key, api.min_version, min(api.max_version, self.newest(node_id, api.api_key)))
            for api in response.api_keys
        ]
        if not self._finalized:
            response.finalized_features = [
                feature for feature in response.finalized_features if feature.name != TRANSACTION_VERSION
            ]
