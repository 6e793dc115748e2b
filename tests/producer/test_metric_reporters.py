from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import KafkaProducer, Outcome
from aioproducer.errors import ConfigException
from aioproducer.protocol.api_key import ApiKey
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster, never
from tests.support.virtual_time import World, virtual


class Reporter:
    """Notes what it is told."""

    def __init__(self, *, broken: str = "", slow: float = 0.0) -> None:
        self.broken, self.slow = broken, slow
        self.told: list[str] = []
        self.producer: Any = None

    def init(self, producer: KafkaProducer) -> None:
        self.told.append("init")
        self.producer = producer
        if "init" in self.broken:
            raise ValueError("init")

    async def close(self) -> None:
        self.told.append("close")
        try:
            await asyncio.sleep(self.slow)
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        if "close" in self.broken:
            raise ValueError("close")


@virtual
async def test_begun_and_ended_with_the_producer(world: World) -> None:
    reporter = Reporter()
    async with ScriptedCluster() as cluster:
        producer = make_producer(cluster.bootstrap_servers, metric_reporters=[reporter])
        assert reporter.told == []
        async with producer:
            assert reporter.producer is producer
            producer.send("t", b"v")
        assert reporter.told == ["init", "close"]
        assert producer.metrics()["record-delivered-total"] == 1


@virtual
async def test_a_reporter_that_raises_harms_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    no_beginning, no_end, good = Reporter(broken="init"), Reporter(broken="close"), Reporter()
    async with ScriptedCluster() as cluster:
        reporters = [no_beginning, no_end, good]
        async with make_producer(cluster.bootstrap_servers, metric_reporters=reporters) as producer:
            _ = await producer.send("t", b"v")
    assert [reporter.told for reporter in reporters] == [["init"], ["init", "close"], ["init", "close"]]
    assert ["could not start" in line or "at the end of" in line for line in caplog.messages] == [True, True]


@virtual
async def test_a_reporter_that_does_not_end_is_cancelled(world: World, caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    async with ScriptedCluster() as cluster:
        for timeout, least, most in ((None, 5.0, 5.1), (1.0, 1.0, 1.1), (0.0, 0.0, 0.1)):
            slow, good = Reporter(slow=100.0), Reporter()
            producer = make_producer(cluster.bootstrap_servers, metric_reporters=[slow, good])
            await producer.start()
            began = loop.time()
            await producer.close(timeout)
            assert least <= loop.time() - began <= most
            assert slow.told[0] == good.told[0] == "init"
            assert timeout == 0.0 or slow.told == ["init", "close", "cancelled"]
    assert any("did not end within 5 s" in line for line in caplog.messages)


def test_a_value_that_is_no_reporter_is_refused() -> None:
    with pytest.raises(ConfigException, match="each with methods init and close"):
        make_producer("b:1", metric_reporters=[print])
    with pytest.raises(ConfigException, match=r"metric\.reporters"):
        make_producer("b:1", metric_reporters="nobody.Knows.It")
    with pytest.raises(ConfigException, match=r"metric\.reporters"):
        make_producer("b:1", metric_reporters=[NeedsArguments])


class NeedsArguments(Reporter):
    def __init__(self, needed: int) -> None:
        super().__init__()


class Stubborn(Reporter):
    """Takes a second to end, whoever is in a hurry."""

    async def close(self) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            raise


@virtual
async def test_a_close_cut_short_twice_leaves_nothing_behind(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, never())
        producer = make_producer(cluster.bootstrap_servers, metric_reporters=[Stubborn()])
        await producer.start()
        delivery = producer.send("t", b"v")
        await cluster.broker.received(ApiKey.PRODUCE)
        await asyncio.gather(producer.close(timeout=0.1), producer.close(timeout=0.2))
        assert delivery.outcome is Outcome.UNKNOWN
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("aioproducer ")] == []
