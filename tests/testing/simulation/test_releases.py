from __future__ import annotations

from random import Random

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from aioproducer.testing.simulation.releases import BEFORE_KIP_1269, NEWEST, OLD, Releases


def answer(releases: Releases, node_id: int) -> tuple[dict[int, int], list[str]]:
    """The newest versions that the node announces, and the finalized features."""
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(ApiKey.PRODUCE, 3, 14), ApiVersion(ApiKey.METADATA, 0, 13)],
        finalized_features=[FinalizedFeatureKey("transaction.version", 2, 2)],
    )
    releases.limit_response(node_id, response)
    return (
        {api.api_key: api.max_version for api in response.api_keys},
        [feature.name for feature in response.finalized_features],
    )


def test_without_upgrades_nodes_say_what_they_are() -> None:
    assert answer(Releases(), 0) == ({ApiKey.PRODUCE: 14, ApiKey.METADATA: 13}, ["transaction.version"])


def test_a_node_says_what_it_was_replaced_by() -> None:
    releases = Releases(OLD[0], upgrades=True)
    assert answer(releases, 0) == ({ApiKey.PRODUCE: 7, ApiKey.METADATA: 7}, [])
    releases.replaced(0, BEFORE_KIP_1269, range(2))
    assert answer(releases, 0) == ({ApiKey.PRODUCE: 13, ApiKey.METADATA: 13}, [])
    assert answer(releases, 1)[0] == {ApiKey.PRODUCE: 7, ApiKey.METADATA: 7}
    assert [releases.newest(node, ApiKey.PRODUCE) for node in (0, 1)] == [13, 7]


def test_the_second_protocol_of_transactions_is_there_when_all_nodes_know_it_and_stays() -> None:
    releases, random = Releases(upgrades=True), Random(0)
    assert {tuple(releases.choose(random)) for _ in range(100)} > {tuple(NEWEST), tuple(BEFORE_KIP_1269)}
    releases.replaced(0, OLD[-1], range(2))
    releases.replaced(1, NEWEST, range(2))
    assert answer(releases, 1)[1] == []
    releases.replaced(0, NEWEST, range(2))
    assert answer(releases, 1)[1] == ["transaction.version"]
    assert all(releases.choose(random) in (NEWEST, BEFORE_KIP_1269) for _ in range(100))
