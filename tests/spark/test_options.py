from __future__ import annotations

import pytest

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.options import check_known, duration_ms, flag, kafka_configs, number, one_of, text

SERVERS = {"kafka.bootstrap.servers": "b:1"}


def test_configs_have_the_prefix_in_any_case_of_letters() -> None:
    given = {"Kafka.Bootstrap.Servers": "b:1", "kafka.linger.ms": "7", "topic": "t"}
    assert kafka_configs(given) == {"bootstrap.servers": "b:1", "linger.ms": "7"}


@pytest.mark.parametrize("given", [{}, {"kafka.bootstrap.servers": ""}, {"bootstrap.servers": "b:1"}])
def test_without_brokers_nothing_can_be_done(given: dict[str, str]) -> None:
    with pytest.raises(IllegalArgumentException, match=r'option "kafka\.bootstrap\.servers" is missing'):
        kafka_configs(given)


def test_a_refused_option_says_what_to_do_instead() -> None:
    with pytest.raises(IllegalArgumentException, match=r'option "kafka\.x" may not be set: do that'):
        kafka_configs({**SERVERS, "kafka.x": "1"}, {"x": "do that", "y": "do this"})


def test_unknown_options_are_named_with_what_may_be_meant() -> None:
    check_known({**SERVERS, "TOPIC": "t", "checkpointlocation": "x", "queryname": "y"}, ["topic"], "sink")
    with pytest.raises(IllegalArgumentException, match='the sink has no option "topics"; did you mean "topic"'):
        check_known({"topics": "t"}, ["topic", "writeId"], "sink")
    with pytest.raises(IllegalArgumentException, match=r'no option "z\.z"; it has topic, writeId and kafka\.\*'):
        check_known({"z.z": "t"}, ["topic", "writeId"], "sink")
    with pytest.raises(IllegalArgumentException, match=r"no option whose name is not shown, .*; it has topic, writeId"):
        check_known({"mighageam": "t"}, ["topic", "writeId"], "sink")


def test_texts() -> None:
    assert text({"writeid": "x"}, "writeId") == "x"
    assert text({}, "writeId") is None
    with pytest.raises(IllegalArgumentException, match='option "writeId" is empty'):
        text({"writeid": " "}, "writeId")


def test_numbers() -> None:
    assert number({"most": "12"}, "most") == 12
    assert number({}, "most") is None
    for wrong in ("x", "1.5", "-1"):
        with pytest.raises(IllegalArgumentException, match=f'"most" is "{wrong}"; it must be an integer of at least 0'):
            number({"most": wrong}, "most")


def test_choices() -> None:
    assert one_of({"how": "LATE"}, "how", ("early", "late"), "early") == "late"
    assert one_of({}, "how", ("early", "late"), "early") == "early"
    with pytest.raises(IllegalArgumentException, match='option "how" is "x"; it must be early or late'):
        one_of({"how": "x"}, "how", ("early", "late"), "early")


def test_flags() -> None:
    assert flag({"really": "TRUE"}, "really")
    assert not flag({}, "really")
    assert flag({}, "really", default=True)
    with pytest.raises(IllegalArgumentException, match='option "really" is "maybe"; it must be true or false'):
        flag({"really": "maybe"}, "really")


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("90s", 90_000),
        ("15m", 900_000),
        ("2 min", 120_000),
        ("1H", 3_600_000),
        ("1d", 86_400_000),
        ("7", 7),
        ("7ms", 7),
    ],
)
def test_times(value: str, ms: int) -> None:
    assert duration_ms({"maxtriggerdelay": value}, "maxTriggerDelay", 5) == ms
    assert duration_ms({}, "maxTriggerDelay", 5) == 5


@pytest.mark.parametrize("value", ["1.5s", "-1s", "s", "5 weeks", "9" * 16])
def test_a_value_that_is_no_duration_is_refused(value: str) -> None:
    with pytest.raises(IllegalArgumentException, match=r'"maxTriggerDelay" is ".*"; it must be a whole number and a'):
        duration_ms({"maxTriggerDelay": value}, "maxTriggerDelay", 5)
