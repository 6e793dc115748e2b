from __future__ import annotations

from aioproducer import HealthThresholds, KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.integrations.service_health import liveness, readiness
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import end_of, make_producer


def test_a_producer_that_has_reached_nobody_lives_and_is_not_ready() -> None:
    producer = KafkaProducer(bootstrap_servers="b:1")
    assert liveness([producer]) == (200, {"ok": True, "why_not": [], "findings": []}, {})
    assert readiness([producer]) == (503, {"ok": False, "why_not": ["no broker was reached yet"], "findings": []}, {})


async def test_an_undeliverable_record_is_reported_and_puts_nothing_out_of_service() -> None:
    async with EmbeddedCluster() as cluster, make_producer(cluster.bootstrap_servers, max_request_size=100) as producer:
        await producer.send("t", b"value")
        await end_of(producer.send("t", bytes(200)))
        answer = readiness([producer])
        assert (answer.status, answer.body["ok"], answer.body["why_not"]) == (200, True, [])
        (finding,) = answer.body["findings"]
        assert (finding["metric"], finding["severity"]) == ("record-error-rate", "CRITICAL")
        assert finding["what_to_do"]


async def test_without_memory_it_takes_no_requests_and_lives() -> None:
    async with EmbeddedCluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        await producer.send("t", b"value")
        thresholds = HealthThresholds(buffer_available=1.1)
        answer = readiness([producer], thresholds)
        assert (answer.status, answer.body["why_not"]) == (503, ["buffer-available-bytes"])
        assert liveness([producer], thresholds).status == 200
