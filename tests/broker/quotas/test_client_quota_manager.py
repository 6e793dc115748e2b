from __future__ import annotations

import math

import pytest

from aioproducer.broker.quotas.client_quota_manager import ClientQuotaManager, ControllerMutationQuotaManager
from aioproducer.broker.quotas.client_quotas import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, ClientQuotas, entity
from aioproducer.broker.quotas.rate_quota import QuotaWindow
from aioproducer.errors import ThrottlingQuotaExceededException

WINDOW = QuotaWindow(1.0, 11)


def quotas_of(key: str, *entries: tuple[dict[str, str | None], float]) -> ClientQuotas:
    quotas = ClientQuotas()
    for of, bound in entries:
        quotas.alter(entity(of.items()), [(key, bound)])
    return quotas


class TestByteRate:
    def test_clients_without_a_quota_are_not_counted(self) -> None:
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 1)), WINDOW)
        assert manager.record("b", "x", 1e9, 0.0) == 0
        assert list(manager.usage(0.0)) == []
        assert manager.most_in_window("b", "x") == math.inf

    def test_the_throttle_brings_the_rate_down(self) -> None:
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 100)), WINDOW)
        assert manager.record("a", "x", 1000, 0.0) == 0
        assert manager.record("a", "x", 500, 0.0) == 5000  # 150 a second over 10 s
        assert manager.most_in_window("a", "x") == 1000

    def test_a_throttle_time_may_be_capped(self) -> None:
        quotas = quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 100))
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, WINDOW, most_ms=1000)
        assert manager.record("a", "x", 5000, 0.0) == 1000

    def test_clients_of_one_entity_share(self) -> None:
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 100)), WINDOW)
        manager.record("a", "x", 1000, 0.0)
        assert manager.record("a", "y", 500, 0.0) == 5000
        assert [client for client, _, _ in manager.usage(0.0)] == [("a", "")]

    def test_clients_of_a_default_do_not(self) -> None:
        quotas = quotas_of(PRODUCER_BYTE_RATE, ({"client-id": None}, 100))
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, WINDOW)
        manager.record("a", "x", 1000, 0.0)
        assert manager.record("a", "y", 500, 0.0) == 0
        assert manager.record("b", "x", 500, 0.0) == 5000

    def test_another_bound_counts_at_once(self) -> None:
        quotas = quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 100))
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, WINDOW)
        manager.record("a", "x", 1500, 0.0)
        quotas.alter(entity([("user", "a")]), [(PRODUCER_BYTE_RATE, 1000)])
        assert manager.record("a", "x", 0, 0.0) == 0

    def test_usage(self) -> None:
        manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas_of(PRODUCER_BYTE_RATE, ({"user": "a"}, 100)), WINDOW)
        manager.record("a", "x", 1000, 0.0)
        ((client, rate, throttle_time),) = manager.usage(0.0)
        assert (client, rate) == (("a", ""), 100)
        assert math.isnan(throttle_time)
        manager.throttled("a", "x", 40, 0.0)
        manager.throttled("a", "y", 60, 0.0)
        manager.throttled("b", "y", 1000, 0.0)
        assert [throttle_time for _, _, throttle_time in manager.usage(0.0)] == [50]


class TestControllerMutations:
    def test_a_strict_quota_lets_the_last_one_through_whole_and_refuses_the_next(self) -> None:
        quotas = quotas_of(CONTROLLER_MUTATION_RATE, ({"client-id": "x"}, 1))
        manager = ControllerMutationQuotaManager(quotas, WINDOW)
        first = manager.quota("a", "x", 0.0, strict=True)
        first.record(11)
        first.record(5)
        assert first.throttle_ms == 0
        with pytest.raises(ThrottlingQuotaExceededException, match="try again in 5000 ms"):
            first.record(1)
        assert first.throttle_ms == 5000
        manager.quota("a", "x", 5.0, strict=True).record(1)
        assert dict(manager.tokens(5.0)) == {("", "x"): -1.0}

    def test_a_permissive_one_only_throttles(self) -> None:
        quotas = quotas_of(CONTROLLER_MUTATION_RATE, ({"client-id": "x"}, 2))
        manager = ControllerMutationQuotaManager(quotas, WINDOW)
        quota = manager.quota("a", "x", 0.0, strict=False)
        quota.record(22)
        assert quota.throttle_ms == 0
        quota.record(4)
        assert quota.throttle_ms == 2000

    def test_a_client_without_a_quota_is_not_counted(self) -> None:
        manager = ControllerMutationQuotaManager(quotas_of(CONTROLLER_MUTATION_RATE, ({"client-id": "x"}, 1)), WINDOW)
        quota = manager.quota("a", "y", 0.0, strict=True)
        for _ in range(3):
            quota.record(10**9)
        assert quota.throttle_ms == 0
        assert list(manager.tokens(0.0)) == []
