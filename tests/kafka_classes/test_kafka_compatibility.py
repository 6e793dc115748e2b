"""Errors, configs and hashes as Kafka's own classes have them, from one run of Java."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import runpy
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aioproducer import errors
from aioproducer.configs.config_def import Type, parse, table
from aioproducer.configs.producer_config import ProducerConfig, producer_config
from aioproducer.configs.unsupported import BY_PRODUCERS
from aioproducer.errors import ApiException, ConfigException, error_class
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.accumulator.murmur2 import murmur2
from tests.support.java_source import java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

VERSION = "4.3.1"
ROOT = Path(__file__).parents[2]

VALUES = [
    *("", " ", "0", "1", "-1", "-2", "2", "5", "9", "10", "17", "18", "22", "23", "-131072", "-131073", "4999", "5000"),
    *("60", "300", "900", "901", "3600", "3601", "86400", "86401", "0.25", "0.26", "0.49", "0.5", "1.1"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *("+5", "-0", "007", "1_000", "1,000", "1e3", "5.0", "0x10", "5L", " 5 ", "- 5", "five", "null", "None"),
    *("true", "false", "TRUE", "False", " true ", "yes", "t", "on"),
    *("all", "ALL", " all ", "none", "gzip", "GZIP", "snappy", "lz4", "zstd", "brotli"),
    *("rebootstrap", "Rebootstrap", "use_all_dns_ips", "USE_ALL_DNS_IPS", "resolve_canonical_bootstrap_servers_only"),
    *("a:1", "a:1,b:2", "a:1, b:2 ", ",", "aioproducer", "PLAINTEXT", "plaintext"),
]

LEFT_OUT = {"RefreshRetriableException", "ApplicationRecoverableException", "InvalidOffsetException", "KafkaException"}
"""Classes between Kafka's exceptions and their flags for which nobody here has a use."""


@dataclass
class Kafka:
    """What Kafka said."""

    errors: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    configs: dict[str, tuple[str, str]] = field(default_factory=dict)
    ranges: dict[str, str] = field(default_factory=dict)
    takes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    hashes: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    """Runs KafkaClasses.java."""
    values = tmp_path_factory.mktemp("classes") / "values"
    values.write_text("".join(value + "\n" for value in VALUES))
    source = Path(__file__).with_name("KafkaClasses.java")
    run = subprocess.run(java_command(source, str(values)), capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    said = Kafka()
    for line in run.stdout.splitlines():
        kind, name, *words = line.split(" ")
        match kind:
            case "error":
                said.errors[words[0]] = (int(name), words[1:])
            case "config":
                said.configs[name] = (words[0], " ".join(words[1:]))
            case "range":
                said.ranges[name] = " ".join(words)
            case "takes":
                said.takes[name].add(VALUES[int(words[0])])
            case "hash":
                said.hashes[VALUES[int(name)]] = int(words[0])
    return said


# Errors


def test_every_error_has_kafkas_name_and_number(kafka: Kafka) -> None:
    assert {code.name: int(code) for code in ErrorCode} == {name: code for name, (code, _) in kafka.errors.items()}


def named() -> list[type[ApiException]]:
    """Our classes of errors that have a number of their own."""
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, ApiException)]
    return [cls for cls in classes if "code" in vars(cls)]


@pytest.mark.parametrize("cls", named(), ids=lambda cls: cls.__name__)
def test_a_class_has_the_name_and_the_ancestors_of_kafkas(cls: type[ApiException], kafka: Kafka) -> None:
    _, chain = kafka.errors[cls.code.name]
    ours = [each.__name__ for each in cls.__mro__[: cls.__mro__.index(ApiException) + 1]]
    assert ours == [name for name in chain if name not in LEFT_OUT]
    assert cls.retriable == ("RetriableException" in chain)
    assert cls.refresh_metadata == ("InvalidMetadataException" in chain)
    assert error_class(cls.code) is cls


def test_retriable_errors_without_a_class_belong_to_requests_that_are_never_made(kafka: Kafka) -> None:
    """Fetch sessions, elections, share groups."""
    retriable = {ErrorCode(code) for code, chain in kafka.errors.values() if "RetriableException" in chain}
    assert retriable - {cls.code for cls in named()} == {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }


# Configs

OURS = table(ProducerConfig)
OWN = {
    "batch.initial.size",
    "batch.max.size",
    "transaction.group.window.ms",
    "compression.thread.bytes",
    "parked.memory",
    "pipeline",
    "sasl.oauth.token.provider",
    "sasl.plain.password",
    "sasl.plain.username",
    "ssl.context",
}
WITH_KAFKA_4_4 = {"client.rack", "partitioner.rack.aware"}
CLASSES = {
    "interceptor.classes",
    "key.serializer",
    "metric.reporters",
    "partitioner.class",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "ssl.engine.factory.class",
    "value.serializer",
}
BY_THE_FILE = {"ssl.keystore.type", "ssl.truststore.type"}
NARROWER = {
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.trustmanager.algorithm",
    *BY_THE_FILE,
}
"""Of what Kafka takes, a part is not there yet."""
STRICTER = {
    # Times and intervals for which Kafka gives no range.
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "connections.max.idle.ms",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.kerberos.min.time.before.relogin",
}


RULES = {"sasl.mechanism", "batch.size", "max.in.flight.requests.per.connection", "send.buffer.bytes"}
"""Differences that show only with other configs: tests/configs/test_producer_config.py has them."""


def test_every_difference_is_documented() -> None:
    documented = runpy.run_path(str(ROOT / "scripts" / "configuration.py"))["DIFFERENCES"]
    assert set(documented) == OWN | CLASSES | STRICTER | RULES | NARROWER


def test_both_sides_of_every_bound_are_among_the_values_tried(kafka: Kafka) -> None:
    for name in set(OURS) & set(kafka.configs):
        if OURS[name].type in (Type.INT, Type.LONG):
            low, *high = (int(bound) for bound in re.findall(r"-?\d+", kafka.ranges[name].partition(" or ")[0]) or [-1])
            beyond = [low, low - 1, *(limit + above for limit in high for above in (0, 1))]
            assert {str(number) for number in beyond} <= set(VALUES), name


def test_every_config_is_kafkas_or_known_to_be_our_own(kafka: Kafka) -> None:
    assert set(OURS) - set(kafka.configs) == OWN | WITH_KAFKA_4_4


def test_a_config_that_only_kafka_has_is_refused_by_name(kafka: Kafka) -> None:
    for name in set(kafka.configs) - set(OURS):
        with pytest.raises(ConfigException, match="is not supported: "):
            producer_config({"bootstrap.servers": "b:1", name: "1"})
    unknown = {entry for entry in BY_PRODUCERS if not any(name.startswith(entry) for name in kafka.configs)}
    assert unknown == {
        "auto.include.jmx.reporter",  # gone since Kafka 4.0, but still in many a file
        "metadata.cluster.check.enable",  # comes with Kafka 4.4
    }


@pytest.mark.parametrize("name", sorted(set(OURS) - OWN - WITH_KAFKA_4_4 - CLASSES))
def test_types_and_defaults_are_kafkas(name: str, kafka: Kafka) -> None:
    kind, default = kafka.configs[name]
    row = OURS[name]
    assert row.type.value == kind.lower()
    if name == "sasl.mechanism":
        assert (row.default, default) == (None, "GSSAPI")
    elif name in BY_THE_FILE:
        assert (row.default, default) == (None, "JKS")
    elif row.default is dataclasses.MISSING:
        assert default == "required" or default.startswith("java.lang.Object")
    else:
        ours = "null" if row.default is None else str(row.default)
        if row.type is Type.LIST:
            ours = f"[{', '.join(row.default)}]"
        assert (ours.lower() if row.type is Type.BOOLEAN else ours) == default


@pytest.mark.parametrize("name", sorted(set(OURS) - OWN - WITH_KAFKA_4_4 - CLASSES - NARROWER))
def test_takes_the_values_that_kafka_takes(name: str, kafka: Kafka) -> None:
    taken = set()
    for value in VALUES:
        with contextlib.suppress(ConfigException):
            parse(ProducerConfig, {"bootstrap.servers": "b:1"} | {name: value})
            taken.add(value)
    expected = kafka.takes[name]
    if OURS[name].type is Type.LIST and OURS[name].default is not dataclasses.MISSING:
        taken.discard(",")  # an empty part of a list is left out here, and refused there
    if name in STRICTER:
        assert taken <= expected
        expected = {value for value in expected if int(value) >= -1} - ({"-1"} - taken)
    assert taken == expected


# Hashes


def test_hashes_are_kafkas(kafka: Kafka) -> None:
    assert {value: murmur2(value.encode()) for value in VALUES} == {
        value: hashed % 2**32 for value, hashed in kafka.hashes.items()
    }
