"""The configs of the producer: one table, with Kafka's names, types, defaults and ranges.

Defaults and rules between configs are those of ``ProducerConfig`` in Apache Kafka 4.3, with one exception:
KIP-1269 lifts the limit of 5 on ``max.in.flight.requests.per.connection`` for idempotent producers. Instead, the window
of 5 batches is kept per partition.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioproducer.configs.client_config import ClientConfig, client_config
from aioproducer.configs.config_def import (
    ANY,
    INT_MAX,
    MAX_NAME,
    Type,
    Valid,
    at_least,
    between,
    bytes_of_text,
    key,
    one_of,
    table,
)
from aioproducer.configs.unsupported import BY_PRODUCERS
from aioproducer.errors import ConfigException

GZIP_LEVEL = Valid("1 to 9, or -1", lambda level: level == -1 or 1 <= level <= 9)

SERIALIZER = Valid(
    "a callable, or an object with a method serialize", lambda plugin: callable(plugin) or hasattr(plugin, "serialize")
)

INTERCEPTORS = Valid(
    "objects that are callable, or have a method on_send, on_acknowledgement or on_send_error",
    lambda plugins: all(
        callable(plugin) or any(hasattr(plugin, hook) for hook in ("on_send", "on_acknowledgement", "on_send_error"))
        for plugin in plugins
    ),
)

PARTITIONER = Valid(
    "a callable, or an object with a method partition", lambda plugin: callable(plugin) or hasattr(plugin, "partition")
)

REPORTERS = Valid(
    "each with methods init and close",
    lambda plugins: all(hasattr(plugin, "init") and hasattr(plugin, "close") for plugin in plugins),
)

AUTO_LINGER_MS = 100
"""The limit for pipeline=auto if linger.ms is not given: enough for windows of 5 and round trips of 500 ms."""

_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # which would take milliseconds to make
class ProducerConfig(ClientConfig):
    """A producer's configs, parsed and checked. Times are in milliseconds, sizes in bytes, unless the text says
    otherwise."""

    client_id: str = key(
        Type.STRING,
        "",
        bytes_of_text(0, MAX_NAME),
        "Sent with every request, for the broker's logs and quotas, and the tag of all metrics. If it is not given: "
        "`producer-` and the transactional.id, or else a number, so that the first of a process is `producer-1`.",
    )
    key_serializer: Any = key(
        Type.CLASS,
        None,
        SERIALIZER,
        "Turns keys into bytes; without one, keys must be bytes or None. An object, a class, the name of either, or a "
        "plain callable; it may be asynchronous. `aioproducer.serializers` has those of Kafka.",
    )
    value_serializer: Any = key(
        Type.CLASS, None, SERIALIZER, "Turns values into bytes; without one, values must be bytes or None."
    )
    interceptor_classes: tuple[Any, ...] = key(
        Type.CLASSES,
        (),
        INTERCEPTORS,
        "See every record before it is sent, and when it ends, in this order: objects, classes, the names of either, "
        "or plain callables; see `aioproducer.ProducerInterceptor`.",
    )
    acks: str = key(
        Type.STRING, "all", one_of("all", "-1", "0", "1"), "Which replicas must have a record before it is delivered."
    )
    enable_idempotence: bool = key(
        Type.BOOLEAN, True, ANY, "Retries neither duplicate nor reorder records; needs acks=all and retries above 0."
    )
    transactional_id: str | None = key(
        Type.STRING,
        None,
        bytes_of_text(1, MAX_NAME),
        "Identifies the producer across restarts, and enables transactions.",
    )
    transaction_timeout_ms: int = key(
        Type.INT, 60000, ANY, "A transaction that has not ended after this long is aborted by its coordinator."
    )
    transaction_two_phase_commit_enable: bool = key(
        Type.BOOLEAN,
        False,
        ANY,
        "Transactions take part in a two-phase commit (KIP-939): the coordinator never aborts them for their age. Not "
        "together with transaction.timeout.ms. The broker must allow it.",
    )
    transaction_group_window_ms: int = key(
        Type.LONG,
        0,
        at_least(0),
        "How long a transaction of units stays open for more of them before it is committed. With 0, units share a "
        "commit if they end in the same turn of the event loop, or while the commit before is under way.",
    )
    batch_size: int = key(
        Type.INT,
        16384,
        between(0, INT_MAX),
        "A batch is ready to be sent when it has this many bytes, and does not linger any more; 0 means 1.",
    )
    batch_max_size: int = key(
        Type.INT,
        262144,
        between(0, INT_MAX),
        "A batch that is ready and cannot leave yet takes more records up to this many bytes: from batch.size, with "
        "which none grows, to max.request.size. If it is not given it gives way to either, and no batch grows with a "
        "batch.size of 0 or 1. Where brokers take only small requests (socket.request.max.bytes), set it to less: they "
        "close the connection on a larger one without an error, and some connections end until batches are small.",
    )
    batch_initial_size: int = key(
        Type.INT,
        1024,
        between(0, INT_MAX),
        "Bytes of buffer.memory that a batch is charged for records when it begins, and by which its charge grows at "
        "least; at most batch.size, to which it gives way if it is not given.",
    )
    linger_ms: int = key(
        Type.LONG,
        5,
        at_least(0),
        "How long a batch that is not full waits for more records; if it is not given, see pipeline.",
    )
    pipeline: str = key(
        Type.STRING,
        "auto",
        one_of("fixed", "auto"),
        "When a batch that is not full leaves. With fixed: after linger.ms; that is the default if linger.ms is given. "
        "With auto: at once if all its records are awaited, or if some are and a turn of the event loop adds none; "
        "otherwise the measured round trip, window and arrival of records decide, and linger.ms, 100 if it is not "
        "given, is the longest wait.",
    )
    buffer_memory: int = key(
        Type.LONG,
        33554432,
        at_least(0),
        "Bytes that records may take, including bookkeeping, while they wait or are under way.",
    )
    parked_memory: int = key(
        Type.LONG,
        16777216,
        at_least(0),
        "The most bytes that unawaited records of send() may take, including bookkeeping, while they wait for "
        "serializers, metadata or memory.",
    )
    max_block_ms: int = key(
        Type.LONG, 60000, at_least(0), "How long a record may wait for serializers, metadata and memory together."
    )
    max_request_size: int = key(
        Type.INT,
        1048576,
        at_least(0),
        "Largest record, and largest request of several batches. A request of one batch may be as large as batch.size "
        "where that is more, as in Kafka.",
    )
    max_in_flight_requests_per_connection: int = key(
        Type.INT,
        5,
        at_least(1),
        "Unanswered requests that a connection may have; fewer while batches are small and the broker takes long.",
    )
    retries: int = key(Type.INT, INT_MAX, between(0, INT_MAX), "Attempts beyond the first; prefer delivery.timeout.ms.")
    delivery_timeout_ms: int = key(
        Type.INT, 120000, at_least(0), "From acceptance to success or failure; at least linger.ms + request.timeout.ms."
    )
    compression_type: str = key(
        Type.STRING, "none", one_of("none", "gzip", "snappy", "lz4", "zstd"), "Codec of whole batches."
    )
    compression_gzip_level: int = key(Type.INT, -1, GZIP_LEVEL, "Level for gzip; -1 is the codec's default.")
    compression_lz4_level: int = key(Type.INT, 9, between(1, 17), "Level for lz4.")
    compression_zstd_level: int = key(Type.INT, 3, between(-131072, 22), "Level for zstd.")
    compression_thread_bytes: int = key(
        Type.LONG,
        -1,
        at_least(-1),
        "Batches of at least this many uncompressed bytes are compressed in a worker thread, smaller ones on the event "
        "loop; -1 means what takes about a millisecond with the codec and its level.",
    )
    partitioner_class: Any = key(
        Type.CLASS,
        None,
        PARTITIONER,
        "Chooses the partition of each record that names none; without one, the key decides, and records without a key "
        "go to partitions in turn. An object, a class, the name of either, or a plain callable (see "
        "`aioproducer.partitioners`).",
    )
    partitioner_ignore_keys: bool = key(Type.BOOLEAN, False, ANY, "Spread records with a key as if they had none.")
    partitioner_adaptive_partitioning_enable: bool = key(
        Type.BOOLEAN, True, ANY, "Records without a key go to partitions with shorter queues more often."
    )
    partitioner_availability_timeout_ms: int = key(
        Type.LONG,
        0,
        at_least(0),
        "Adaptive partitioning avoids a broker that could take nothing for longer than this; 0 for never.",
    )
    partitioner_rack_aware: bool = key(
        Type.BOOLEAN, False, ANY, "Records without a key go to partitions led from client.rack, if there are any."
    )
    client_rack: str = key(Type.STRING, "", ANY, "Where this producer is, as broker.rack says for brokers.")
    metadata_max_idle_ms: int = key(Type.LONG, 300000, at_least(5000), "A topic unused for this long is forgotten.")

    metric_reporters: tuple[Any, ...] = key(
        Type.CLASSES,
        (),
        REPORTERS,
        "Publish the metrics elsewhere: classes, objects or import paths, such as "
        "`aioproducer.metrics_topic.MetricsTopicReporter`.",
    )
    enable_metrics_push: bool = key(
        Type.BOOLEAN,
        True,
        ANY,
        "Push metrics to the brokers if these subscribe to them (KIP-714); needs the extra `telemetry`.",
    )
    metrics_num_samples: int = key(Type.INT, 2, at_least(1), "Time windows that rates and averages cover.")
    metrics_sample_window_ms: int = key(Type.LONG, 30000, at_least(0), "The length of such a window.")
    metrics_recording_level: str = key(
        Type.STRING, "INFO", one_of("INFO", "DEBUG", "TRACE"), "How much is measured; DEBUG adds queue times per topic."
    )
    send_buffer_grows: bool = field(default=False, repr=False)
    """Whether a connection may have more than send.buffer.bytes: if that is not given."""

    @property
    def required_acks(self) -> int:
        """``acks`` as the protocol encodes it: -1, 0 or 1."""
        return -1 if self.acks in ("all", "-1") else int(self.acks)

    @property
    def adaptive_partitioning(self) -> bool:
        """Not with a user's own partitioner, because then there is nothing to decide."""
        return self.partitioner_adaptive_partitioning_enable and self.partitioner_class is None

    @property
    def compression_level(self) -> int | None:
        """The level for the chosen codec, ``None`` for its default."""
        level = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }.get(self.compression_type)
        return None if self.compression_type == "gzip" and level == -1 else level


V = TypeVar("V")


def known_to(
    config_class: type[ClientConfig], given: Mapping[str, V], *, of: type[ClientConfig] = ProducerConfig
) -> dict[str, V]:
    """The configs of one kind of client for another, by their dotted names: without those that mean nothing to it.

    What neither of them has stays, to be refused.
    """
    foreign = table(of).keys() - table(config_class).keys()
    return {name: value for name, value in given.items() if name not in foreign}


def with_serializers(config: Mapping[str, object], key: object, value: object) -> dict[str, object]:
    """A producer's configs together with its serializers, which are parameters of their own; None is none."""
    serializers = {"key_serializer": key, "value_serializer": value}
    return {name: given for name, given in serializers.items() if given is not None} | dict(config)


def producer_config(given: Mapping[str, object]) -> ProducerConfig:
    """The user's configs, checked one by one and against each other (``ProducerConfig.postProcess…`` in Kafka)."""
    config = client_config(ProducerConfig, given, owner="producer", unsupported=BY_PRODUCERS)
    explicit = {name.replace(".", "_") for name in given}
    size, memory = config.batch_size, config.buffer_memory
    if size > memory and "batch_size" in explicit:
        raise ConfigException(
            f"batch.size is {size}; it must be at most buffer.memory={memory}: lower this, or raise that",
            name="batch.size",
            value=size,
        )
    if size > memory:
        raise ConfigException(
            f"buffer.memory is {memory}; it must be at least batch.size={size}: raise this, or lower that",
            name="buffer.memory",
            value=memory,
        )
    config = _with_batch_sizes(config, explicit)
    if config.partitioner_rack_aware and not config.client_rack.strip():
        raise ConfigException("partitioner.rack.aware=true needs client.rack", name="client.rack", value="")
    if "linger_ms" not in explicit:
        if config.pipeline == "auto":
            config = dataclasses.replace(config, linger_ms=AUTO_LINGER_MS)
    elif "pipeline" not in explicit:
        config = dataclasses.replace(config, pipeline="fixed")
    config = _with_idempotence(config, explicit)
    if config.transactional_id is not None and config.transaction_timeout_ms < 1:
        raise ConfigException(
            f"'transaction.timeout.ms' is '{config.transaction_timeout_ms}'; with a transactional.id it is at least 1",
            name="transaction.timeout.ms",
            value=config.transaction_timeout_ms,
        )
    if config.transaction_two_phase_commit_enable and "transaction_timeout_ms" in explicit:
        raise ConfigException(
            "transaction.timeout.ms is given, and with transaction.two.phase.commit.enable=true transactions have no "
            "time-out: leave out one of the two",
            name="transaction.timeout.ms",
            value=config.transaction_timeout_ms,
        )
    config = _with_delivery_timeout(config, explicit)
    named = "client_id" in explicit
    client_id = config.client_id if named else f"producer-{config.transactional_id or next(_NUMBERS)}"
    return dataclasses.replace(config, client_id=client_id, send_buffer_grows="send_buffer_bytes" not in explicit)


def _with_batch_sizes(config: ProducerConfig, explicit: set[str]) -> ProducerConfig:
    """batch.initial.size <= batch.size <= batch.max.size <= max.request.size (KIP-782); only defaults give way."""
    initial, size, most = config.batch_initial_size, config.batch_size, config.batch_max_size
    if "batch_initial_size" not in explicit:
        initial = min(initial, size)
    elif initial > size:
        raise ConfigException(
            f"batch.initial.size is {initial}; it must be at most batch.size={size}: lower this, or raise that",
            name="batch.initial.size",
            value=initial,
        )
    if "batch_max_size" not in explicit:
        most = max(min(most, config.max_request_size), size) if size > 1 else size  # each record has its own batch
    elif most < size:
        raise ConfigException(
            f"batch.max.size is {most}; it must be at least batch.size={size}: lower that, or raise this",
            name="batch.max.size",
            value=most,
        )
    elif most > config.max_request_size and most > size:
        raise ConfigException(
            f"batch.max.size is {most}; it must be at most max.request.size={config.max_request_size}, the largest "
            "request: raise that, or lower this",
            name="batch.max.size",
            value=most,
        )
    return dataclasses.replace(config, batch_initial_size=initial, batch_max_size=most)


def _with_idempotence(config: ProducerConfig, explicit: set[str]) -> ProducerConfig:
    if not config.enable_idempotence:
        if config.transactional_id is not None:
            raise ConfigException(
                "transactional.id needs enable.idempotence=true, and it is false",
                name="enable.idempotence",
                value=False,
            )
        return config
    for name, weak in (("acks", config.required_acks != -1), ("retries", config.retries == 0)):
        if not weak:
            continue
        if "enable_idempotence" in explicit:
            value = getattr(config, name)
            raise ConfigException(
                f"enable.idempotence=true needs acks=all and retries above 0, but {name} is {value!r}",
                name=name,
                value=value,
            )
        if config.transactional_id is not None:
            value = getattr(config, name)
            raise ConfigException(
                f"transactional.id needs acks=all and retries above 0, but {name} is {value!r}", name=name, value=value
            )
        # Only the default of idempotence gives way: a user who asked for weak acks or no retries meant it (KIP-679).
        return dataclasses.replace(config, enable_idempotence=False)
    return config


def _with_delivery_timeout(config: ProducerConfig, explicit: set[str]) -> ProducerConfig:
    least = min(config.linger_ms + config.request_timeout_ms, INT_MAX)
    if config.delivery_timeout_ms >= least:
        return config
    if "delivery_timeout_ms" in explicit:
        raise ConfigException(
            f"delivery.timeout.ms is {config.delivery_timeout_ms}; "
            f"it must be at least linger.ms + request.timeout.ms = {least}",
            name="delivery.timeout.ms",
            value=config.delivery_timeout_ms,
        )
    return dataclasses.replace(config, delivery_timeout_ms=least)
