from __future__ import annotations

import pytest

from aioproducer.errors import ConfigException, KafkaError
from aioproducer.spark.sink.sink_options import SinkOptions

BASE = {"kafka.bootstrap.servers": "b:1", "topic": "t"}
ONCE = {**BASE, "deliveryGuarantee": "exactly-once"}


def test_at_least_once_is_what_nobody_needs_to_ask_for() -> None:
    chosen = SinkOptions.of({**BASE, "kafka.acks": "1", "kafka.enable.idempotence": "false"}, streaming=False)
    assert (chosen.topic, chosen.exactly_once) == ("t", False)
    assert chosen.configs == {
        "batch.size": "65536",
        "bootstrap.servers": "b:1",
        "acks": "1",
        "enable.idempotence": "false",
    }
    assert "b:1" not in repr(chosen), "configs have passwords among them"


def test_batches_are_larger_than_kafkas_unless_their_size_is_given() -> None:
    assert SinkOptions.of(BASE, streaming=False).configs["batch.size"] == "65536"
    assert SinkOptions.of({**BASE, "kafka.batch.size": "1000"}, streaming=False).configs["batch.size"] == "1000"


def test_exactly_once_of_a_stream_and_of_a_batch() -> None:
    stream = SinkOptions.of(ONCE, streaming=True)
    assert (stream.exactly_once, stream.marker_topic, stream.prefix) == (True, "t", "aioproducer")
    assert stream.configs["transaction.timeout.ms"] == "900000"
    batch = SinkOptions.of(
        {**ONCE, "writeId": "w", "transactionalIdPrefix": "p", "kafka.transaction.timeout.ms": "5000"}, streaming=False
    )
    assert (batch.write_id, batch.prefix, batch.configs["transaction.timeout.ms"]) == ("w", "p", "5000")
    assert batch.write_epoch == 0
    of_stream = SinkOptions.of({**ONCE, "writeId": "w", "writeEpoch": "17"}, streaming=False)
    assert (of_stream.write_id, of_stream.write_epoch) == ("w", 17), "as foreachBatch writes"


@pytest.mark.parametrize(
    ("given", "streaming", "message"),
    [
        (ONCE, False, 'exactly-once of a batch needs option "writeId"'),
        ({**ONCE, "writeId": "w"}, True, '"writeId" is for batches'),
        ({**ONCE, "writeEpoch": "3"}, True, '"writeEpoch" is for batches'),
        ({**ONCE, "writeEpoch": "3"}, False, 'exactly-once of a batch needs option "writeId"'),
        (
            {**ONCE, "writeId": "w", "writeEpoch": "-1"},
            False,
            '"writeEpoch" is "-1"; it must be an integer',
        ),
        ({**BASE, "writeEpoch": "3"}, False, '"writeEpoch" is for exactly-once only'),
        ({**BASE, "writeId": "w"}, False, '"writeId" is for exactly-once only'),
        ({**BASE, "allowMissingMarker": "true"}, True, '"allowMissingMarker" is for exactly-once only'),
        ({**ONCE, "allowMissingMarker": "yes"}, True, "it must be true or false"),
        ({**BASE, "markerTopic": "w"}, False, '"markerTopic" is for exactly-once only'),
        ({**BASE, "deliveryGuarantee": "once"}, False, "it must be at-least-once or exactly-once"),
        ({**BASE, "topics": "t"}, False, 'did you mean "topic"'),
        ({**BASE, "deliveryLog": "s3a://bucket/log"}, False, "or a directory that the tasks find in their own file"),
        ({**BASE, "deliveryLog": "topic:"}, False, "it must name a topic, another one than that of the rows"),
        ({**BASE, "deliveryLog": "topic:t"}, False, "it must name a topic, another one than that of the rows"),
        ({**BASE, "kafka.value.serializer": "x"}, False, "columns are written as they are"),
        ({**BASE, "kafka.transactional.id": "x"}, False, "each task has its own"),
        ({**BASE, "kafka.lingers.ms": "x"}, False, r"did you mean 'linger\.ms'"),
        ({**BASE, "kafka.acks": "7"}, False, "acks"),
        ({**ONCE, "kafka.enable.idempotence": "false"}, True, "idempotence"),
        ({**ONCE, "kafka.acks": "1"}, True, "acks"),
        ({**ONCE, "kafka.transaction.timeout.ms": "0"}, True, r"'transaction\.timeout\.ms' is '0'; .* at least 1"),
        ({**ONCE, "kafka.transaction.timeout.ms": "-5"}, True, r"'transaction\.timeout\.ms' is '-5'; .* at least 1"),
    ],
)
def test_a_wrong_sink_option_is_an_error_before_a_task_runs(
    given: dict[str, str], streaming: bool, message: str
) -> None:
    with pytest.raises(KafkaError, match=message):
        SinkOptions.of(given, streaming=streaming)


def test_harmless_options_of_sparks_connector_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    given = {**BASE, "includeHeaders": "true", "kafka.group.id": "g"}
    assert SinkOptions.of(given, streaming=True) == SinkOptions.of(BASE, streaming=True)
    warnings = [record.getMessage() for record in caplog.records]
    assert [text.partition(" of ")[0] for text in warnings] == ['option "includeHeaders"', 'option "kafka.group.id"']


def test_a_marker_topic_is_required_if_every_row_has_its_topic() -> None:
    without = {name: value for name, value in ONCE.items() if name != "topic"}
    with pytest.raises(KafkaError, match='needs option "markerTopic"'):
        SinkOptions.of(without, streaming=True)
    assert SinkOptions.of({**without, "markerTopic": "m"}, streaming=True).marker_topic == "m"


def test_configs_are_the_producers_own() -> None:
    with pytest.raises(ConfigException, match="bootstrap"):
        SinkOptions.of({"kafka.bootstrap.servers": "no port", "topic": "t"}, streaming=False)
