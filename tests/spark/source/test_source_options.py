"""The source's options: what they mean, and what is wrong with them."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from aioproducer.errors import ConfigException, IllegalArgumentException
from aioproducer.spark.source.source_options import (
    EARLIEST,
    FETCH_BYTES,
    LATEST,
    Position,
    Positions,
    SourceOptions,
    Subscription,
    check_loaded,
)
from aioproducer.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
SERVERS = {"kafka.bootstrap.servers": "b:1"}


def options(*, streaming: Any = False, **given: str) -> SourceOptions:
    return SourceOptions.of({**SERVERS, "subscribe": "t", **given}, streaming=streaming)


def test_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    batch, stream = options(), options(streaming=True)
    assert (batch.starting.everywhere, batch.ending.everywhere) == (
        Position("offset", EARLIEST),
        Position("offset", LATEST),
    )
    assert stream.starting.everywhere == Position("offset", LATEST)
    for each in (batch, stream):
        assert each.subscription == Subscription(topics=("t",))
        assert each.fail_on_data_loss
        assert not each.latest_if_none
        assert not each.read_committed
        assert (each.min_partitions, each.max_records_per_partition, each.max_offsets_per_trigger) == (None,) * 3
        assert each.configs == {"bootstrap.servers": "b:1", "max.partition.fetch.bytes": FETCH_BYTES}


def test_a_batch_of_a_stream_waits_for_offsets() -> None:
    assert options(streaming=True).max_trigger_delay_ms == 900_000
    chosen = options(streaming=True, minOffsetsPerTrigger="7", maxTriggerDelay="90s", maxOffsetsPerTrigger="7")
    assert (chosen.min_offsets_per_trigger, chosen.max_trigger_delay_ms) == (7, 90_000)


@pytest.mark.parametrize(
    "name",
    [
        "groupIdPrefix",
        "kafka.group.id",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "kafkaConsumer.pollTimeoutMs",
        "useDeprecatedOffsetFetching",
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_harmless_options_of_sparks_connector_are_warnings(
    name: str, streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    given = {**SERVERS, "subscribe": "t", name.lower(): "5"}
    assert SourceOptions.of(given, streaming=streaming) == options(streaming=streaming)
    (record,) = caplog.records
    assert f'option "{name}" of Spark\'s Kafka connector does nothing in this source: ' in record.getMessage()


def test_names_may_be_written_in_any_case() -> None:
    lower = {**SERVERS, "subscribe": "t", "failondataloss": "FALSE", "minpartitions": "7", "includebatch": "true"}
    chosen = SourceOptions.of(lower, streaming=False)
    assert (chosen.fail_on_data_loss, chosen.min_partitions) == (False, 7)


def test_a_subscription_is_read_from_its_option() -> None:
    assert options(subscribe=" a, b,a,").subscription.topics == ("a", "b")
    given = {**SERVERS, "assign": '{"t": [1, 0], "u": [2]}'}
    assert SourceOptions.of(given, streaming=False).subscription.partitions == {A, B, TopicPartition("u", 2)}
    given = {**SERVERS, "subscribePattern": "t.*"}
    assert SourceOptions.of(given, streaming=False).subscription.pattern == re.compile("t.*")


def test_configs_go_to_the_readers() -> None:
    chosen = options(**{"kafka.isolation.level": "read_committed", "kafka.max.partition.fetch.bytes": "100"})
    assert chosen.read_committed
    assert chosen.configs["max.partition.fetch.bytes"] == "100"


def test_the_options_can_be_sent_to_tasks_and_hide_the_configs() -> None:
    chosen = SourceOptions.of({**SERVERS, "subscribePattern": "t.*"}, streaming=True)
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    assert "b:1" not in repr(chosen)


@pytest.mark.parametrize(
    ("given", "everywhere", "each"),
    [
        ({"startingOffsets": "earliest"}, Position("offset", EARLIEST), {}),
        (
            {"startingOffsets": '{"t": {"0": 23, "1": -2}}'},
            None,
            {A: Position("offset", 23), B: Position("offset", -2)},
        ),
        ({"startingTimestamp": "1000"}, Position("time", 1000), {}),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}, None, {A: Position("time", 5)}),
        ({"startingOffsetsByTimestamp": '{"t": {"0": "5"}}'}, None, {A: Position("time", 5)}),
        ({"startingOffsets": "earliest", "startingTimestamp": "7"}, Position("time", 7), {}),
    ],
)
def test_starting_positions_are_read_from_their_options(
    given: dict[str, str], everywhere: Position | None, each: dict[TopicPartition, Position]
) -> None:
    starting = options(**given).starting
    assert (starting.everywhere, starting.each) == (everywhere, each)


def test_ending_positions_are_read_from_their_options() -> None:
    assert options(endingOffsets='{"t": {"0": 5}}').ending.each == {A: Position("offset", 5)}
    assert options(endingTimestamp="9").ending.everywhere == Position("time", 9)


def test_positions_must_be_for_exactly_what_is_read() -> None:
    everywhere = Positions("startingOffsets", Position("offset", EARLIEST))
    assert everywhere.of([B, A]) == {A: Position("offset", EARLIEST), B: Position("offset", EARLIEST)}
    each = Positions("startingOffsets", None, {A: Position("offset", 3)})
    assert each.of([A]) == {A: Position("offset", 3)}
    with pytest.raises(IllegalArgumentException, match=r'"startingOffsets" .* it does not name t-1 \('):
        each.of([A, B])
    with pytest.raises(IllegalArgumentException, match=r"it does not name t-1; it names t-0, which are not read"):
        each.of([B])


BOTH: list[tuple[dict[str, str], str]] = [
    ({"subscribe": "t", "assign": '{"t": [0]}'}, 'exactly one .*; "subscribe" and "assign" given'),
    ({}, "exactly one .*; none of them is given"),
    ({"subscribe": ", ,"}, "names no topic"),
    ({"subscribePattern": "t("}, "not a regular expression of Python"),
    ({"assign": "t"}, r'"assign" is "t", which is not JSON .* for example, \{"topic": \[0, 1\]\}'),
    ({"assign": '{"t": 0}'}, "0 is not a JSON list"),
    ({"assign": '{"t": [-1]}'}, "-1 is not a partition"),
    ({"assign": '{"t": [true]}'}, "True is not a partition"),
    ({"assign": "{}"}, "names no partition"),
    (
        {"subscribe": "t", "startingOffsets": "first"},
        '"startingOffsets" is "first", which is not JSON .* earliest, latest, or',
    ),
    ({"subscribe": "t", "startingOffsets": "[]"}, r"\[\] is not a JSON object"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": -3}}'}, "-3 is not an offset"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"0": "5"}}'}, "'5' is not an offset"),
    ({"subscribe": "t", "startingOffsets": '{"t": {"x": 5}}'}, "'x' is not a partition"),
    ({"subscribe": "t", "startingTimestamp": "-1"}, "'-1' is not a time"),
    ({"subscribe": "t", "startingOffsetsByTimestamp": '{"t": {"0": 1.5}}'}, "1.5 is not a time"),
    ({"subscribe": "t", "startingOffsetsByTimestampStrategy": "first"}, "must be error or latest"),
    ({"subscribe": "t", "failOnDataLoss": "maybe"}, "must be true or false"),
    ({"subscribe": "t", "minPartitions": "0"}, "must be an integer of at least 1"),
    ({"subscribe": "t", "startOffsets": "latest"}, 'did you mean "startingOffsets"'),
    ({"subscribe": "t", "kafka.auto.offset.reset": "x"}, '"kafka.auto.offset.reset" may not be set: set option'),
]


@pytest.mark.parametrize(("given", "message"), BOTH)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_wrong_source_option_is_refused(given: dict[str, str], message: str, streaming: bool) -> None:
    with pytest.raises(IllegalArgumentException, match=message):
        SourceOptions.of({**SERVERS, **given}, streaming=streaming)


@pytest.mark.parametrize(
    ("given", "streaming", "message"),
    [
        ({"startingOffsets": "latest"}, False, "a batch cannot begin at the latest offset"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, False, "a batch cannot begin at the latest offset"),
        ({"endingOffsets": "earliest"}, False, "a batch cannot end at the earliest offset"),
        ({"endingOffsets": "latest"}, True, 'option "endingOffsets" is for batches only'),
        ({"maxOffsetsPerTrigger": "5"}, False, 'option "maxOffsetsPerTrigger" is for streams only'),
        ({"minoffsetspertrigger": "5"}, False, 'option "minOffsetsPerTrigger" is for streams only'),
        ({"maxTriggerDelay": "5s"}, False, 'option "maxTriggerDelay" is for streams only'),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, True, "is 5, more than .* which is 4"),
    ],
)
def test_an_option_without_meaning_in_a_batch_or_a_stream_is_refused(
    given: dict[str, str], streaming: bool, message: str
) -> None:
    with pytest.raises(IllegalArgumentException, match=message):
        options(streaming=streaming, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.isolation.level": "committed"}, "read_committed"),
        ({"kafka.fetch.min.byte": "1"}, "did you mean 'fetch.min.bytes'"),
        ({"kafka.linger.ms": "1"}, "linger.ms"),
    ],
)
def test_wrong_configs_are_refused_before_any_task_runs(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        options(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": "t"}, 'option "kafka.bootstrap.servers" is missing'),
        (SERVERS, 'exactly one of the options "subscribe", "subscribePattern" and "assign" says what is read; none'),
        ({**SERVERS, "subscribe": "t", "assign": '{"t": [0]}'}, '"subscribe" and "assign" given'),
        ({**SERVERS, "subscribe": "t", "startingOffset": "latest"}, 'did you mean "startingOffsets"?'),
        ({**SERVERS, "subscribe": "t", "kafka.isolation.levle": "x"}, "isolation.level"),
    ],
)
def test_an_option_wrong_in_batches_and_streams_is_an_error_of_load(given: dict[str, str], message: str) -> None:
    with pytest.raises((IllegalArgumentException, ConfigException), match=re.escape(message)):
        check_loaded(given)


@pytest.mark.parametrize("more", [{"endingOffsets": "latest"}, {"maxOffsetsPerTrigger": "5"}, {"groupIdPrefix": "g"}])
def test_load_accepts_what_a_batch_or_a_stream_has(more: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    check_loaded({**SERVERS, "subscribe": "t", **more})
    assert not caplog.records, "warnings come when a query is planned"
