from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.quotas import client_quotas
from aioproducer.broker.quotas.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    Component,
    Entity,
    Limit,
    MatchType,
    entity,
)
from aioproducer.configs.config_def import INT_MAX
from aioproducer.errors import InvalidRequestException, PolicyViolationException, UnsupportedVersionException


def of(**parts: str | None) -> Entity:
    return entity((kind.replace("_", "-"), name) for kind, name in parts.items())


# Kafka's order of precedence, as it documents it.
PRECEDENCE: list[dict[str, str | None]] = [
    {"user": "a", "client_id": "x"},
    {"user": "a", "client_id": None},
    {"user": "a"},
    {"user": None, "client_id": "x"},
    {"user": None, "client_id": None},
    {"user": None},
    {"client_id": "x"},
    {"client_id": None},
]


class TestEntity:
    def test_the_order_of_the_parts_is_of_no_account(self) -> None:
        assert entity([("user", "a"), ("client-id", None)]) == entity([("client-id", None), ("user", "a")])

    def test_an_address_has_one_form(self) -> None:
        assert of(ip="2001:DB8:0:0::1") == of(ip="2001:db8::1")

    @pytest.mark.parametrize(
        ("parts", "why"),
        [
            ([], "empty"),
            ([("group", "g")], "no quotas for 'group'"),
            ([("user", "a"), ("user", "b")], "twice"),
            ([("user", "")], "user is empty"),
            ([("ip", None), ("user", "a")], "none together"),
            ([("ip", "localhost")], "no IP address"),
        ],
    )
    def test_invalid_entities(self, parts: list[tuple[str, str | None]], why: str) -> None:
        with pytest.raises(InvalidRequestException, match=why):
            entity(parts)


class TestAlter:
    def test_sets_and_removes(self) -> None:
        quotas = ClientQuotas()
        quotas.alter(of(user="a"), [(PRODUCER_BYTE_RATE, 10.0), (REQUEST_PERCENTAGE, 0.5)])
        quotas.alter(of(user="a"), [(PRODUCER_BYTE_RATE, None), (CONSUMER_BYTE_RATE, 5)])
        assert quotas.describe([], strict=False) == {of(user="a"): {REQUEST_PERCENTAGE: 0.5, CONSUMER_BYTE_RATE: 5}}
        assert not quotas.has(PRODUCER_BYTE_RATE)
        quotas.alter(of(user="a"), [(REQUEST_PERCENTAGE, None), (CONSUMER_BYTE_RATE, None)])
        assert quotas.describe([], strict=False) == {}

    def test_removing_a_missing_file_is_no_error(self) -> None:
        quotas = ClientQuotas()
        quotas.alter(of(user="a"), [(PRODUCER_BYTE_RATE, None)])
        assert quotas.describe([], strict=False) == {}

    @pytest.mark.parametrize(
        ("name", "key", "value", "why"),
        [
            (of(user="a"), CONNECTION_CREATION_RATE, 1, "no quota 'connection_creation_rate' for this entity"),
            (of(ip=None), PRODUCER_BYTE_RATE, 1, "may have connection_creation_rate"),
            (of(user="a"), "bytes", 1, "no quota 'bytes'"),
            (of(user="a"), PRODUCER_BYTE_RATE, 0, "more than 0"),
            (of(user="a"), PRODUCER_BYTE_RATE, -1, "more than 0"),
            (of(user="a"), PRODUCER_BYTE_RATE, 1e30, "at most"),
            (of(user="a"), PRODUCER_BYTE_RATE, float("nan"), "not nan"),
            (of(ip=None), CONNECTION_CREATION_RATE, 2**31, "at most"),
            (of(user="a"), PRODUCER_BYTE_RATE, 1.5, "whole number"),
        ],
    )
    def test_a_refused_change_changes_nothing(self, name: Entity, key: str, value: float, why: str) -> None:
        quotas = ClientQuotas()
        with pytest.raises(InvalidRequestException, match=why):
            quotas.alter(name, [(REQUEST_PERCENTAGE, None), (key, value)])
        assert quotas.describe([], strict=False) == {}

    def test_one_quota_twice(self) -> None:
        with pytest.raises(InvalidRequestException, match="twice"):
            ClientQuotas().alter(of(user="a"), [(PRODUCER_BYTE_RATE, 1), (PRODUCER_BYTE_RATE, 2)])

    def test_only_checked(self) -> None:
        quotas = ClientQuotas()
        quotas.change(of(user="a"), [(PRODUCER_BYTE_RATE, 1)], validate_only=True)
        assert quotas.describe([], strict=False) == {}

    def test_entities_and_their_names_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client_quotas, "MAX_ENTITIES", 2)
        quotas = ClientQuotas()
        for name in "ab":
            quotas.alter(of(user=name), [(PRODUCER_BYTE_RATE, 1)])
        with pytest.raises(PolicyViolationException, match="2 entities have quotas"):
            quotas.alter(of(user="c"), [(PRODUCER_BYTE_RATE, 1)])
        quotas.alter(of(user="a"), [(PRODUCER_BYTE_RATE, None)])
        quotas.alter(of(user="c"), [(PRODUCER_BYTE_RATE, 1)])
        with pytest.raises(InvalidRequestException, match="1001 characters"):
            of(user="x" * 1001)

    def test_listeners_hear_of_every_change(self) -> None:
        quotas, heard = ClientQuotas(), []
        quotas.listeners.add(lambda: heard.append(quotas.ip_rates()))
        quotas.alter(of(ip=None), [(CONNECTION_CREATION_RATE, 10)])
        quotas.alter(of(ip="127.0.0.1"), [(CONNECTION_CREATION_RATE, 5)])
        quotas.alter(of(ip=None), [(CONNECTION_CREATION_RATE, None)])
        assert heard == [(10, {}), (10, {"127.0.0.1": 5}), (INT_MAX, {"127.0.0.1": 5})]


class TestDescribe:
    @pytest.fixture
    def quotas(self) -> ClientQuotas:
        quotas = ClientQuotas()
        for parts in (PRECEDENCE[0], PRECEDENCE[2], PRECEDENCE[5], PRECEDENCE[6]):
            quotas.alter(of(**parts), [(PRODUCER_BYTE_RATE, 1)])
        quotas.alter(of(ip="10.0.0.1"), [(CONNECTION_CREATION_RATE, 1)])
        return quotas

    @pytest.mark.parametrize(
        ("components", "strict", "found"),
        [
            ([], False, 5),
            ([], True, 0),
            ([("user", MatchType.EXACT, "a")], False, 2),
            ([("user", MatchType.EXACT, "a")], True, 1),
            ([("user", MatchType.DEFAULT, None)], False, 1),
            ([("user", MatchType.SPECIFIED, None)], False, 3),
            ([("user", MatchType.SPECIFIED, None)], True, 2),
            ([("user", MatchType.EXACT, "a"), ("client-id", MatchType.SPECIFIED, None)], False, 1),
            ([("ip", MatchType.EXACT, "10.0.0.1")], True, 1),
            ([("ip", MatchType.DEFAULT, None)], True, 0),
        ],
    )
    def test_filters(
        self, quotas: ClientQuotas, components: list[tuple[str, int, str | None]], strict: bool, found: int
    ) -> None:
        assert len(quotas.describe([Component(*part) for part in components], strict=strict)) == found

    @pytest.mark.parametrize(
        ("components", "why"),
        [
            ([("user", 0, None)], "a name"),
            ([("user", 1, "a")], "a name"),
            ([("user", 3, None)], "match type 3"),
            ([("user", 1, None), ("user", 0, "a")], "twice"),
            ([("ip", 1, None), ("user", 0, "a")], "none together"),
        ],
    )
    def test_invalid_filters(
        self, quotas: ClientQuotas, components: list[tuple[str, int, str | None]], why: str
    ) -> None:
        with pytest.raises(InvalidRequestException, match=why):
            quotas.describe([Component(*part) for part in components], strict=False)

    def test_an_unknown_type(self, quotas: ClientQuotas) -> None:
        with pytest.raises(UnsupportedVersionException, match="'group'"):
            quotas.describe([Component("group", 1, None)], strict=False)


@given(st.sets(st.integers(0, 7)))
def test_the_most_specific_quota_counts(there: set[int]) -> None:
    quotas = ClientQuotas()
    for rank in there:
        quotas.alter(of(**PRECEDENCE[rank]), [(PRODUCER_BYTE_RATE, rank + 1)])
        quotas.alter(of(**PRECEDENCE[rank]), [(REQUEST_PERCENTAGE, 99)])
    for key in ({"user": "b", "client_id": "x"}, {"user": "a", "client_id": "y"}):
        quotas.alter(of(**key), [(PRODUCER_BYTE_RATE, 1000)])
    limit = quotas.limit(PRODUCER_BYTE_RATE, "a", "x")
    if not there:
        assert limit is None
    else:
        first = PRECEDENCE[min(there)]
        assert limit == Limit(min(there) + 1, "a" if "user" in first else "", "x" if "client_id" in first else "")


def test_a_client_without_a_quota() -> None:
    quotas = ClientQuotas()
    for user, client in product("ab", "xy"):
        assert quotas.limit(PRODUCER_BYTE_RATE, user, client) is None
