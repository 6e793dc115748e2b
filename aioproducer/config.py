"""The configs of the clients, above all the producer: one table, in Kafka's names, types, defaults and ranges.

Defaults and rules between configs are those of ``ProducerConfig`` in Apache Kafka 4.3 (seed 000), save that KIP-1269
lifts the limit of 5 on ``max.in.flight.requests.per.connection`` for idempotent producers: the window of 5 batches is
kept per partition instead.
"""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from aioproducer.config_def import (
    ANY,
    INT_MAX,
    NON_EMPTY,
    Type,
    Valid,
    at_least,
    between,
    key,
    one_of,
    one_of_in_any_case,
    parse,
    table,
)
from aioproducer.credentials import credentials_of
from aioproducer.errors import ConfigException
from aioproducer.password import Password
from aioproducer.sasl import MECHANISMS, PLAIN, Credentials, scramp
from aioproducer.tls import client_context

GZIP_LEVEL = Valid("1 to 9, or -1", lambda level: level == -1 or 1 <= level <= 9)


SERIALIZER = Valid(
    "a callable, or has a method serialize", lambda plugin: callable(plugin) or hasattr(plugin, "serialize")
)

INTERCEPTORS = Valid(
    "objects that are callable, or have a method on_send, on_acknowledgement or on_send_error",
    lambda plugins: all(
        callable(plugin) or any(hasattr(plugin, hook) for hook in ("on_send", "on_acknowledgement", "on_send_error"))
        for plugin in plugins
    ),
)
PARTITIONER = Valid(
    "a callable, or has a method partition", lambda plugin: callable(plugin) or hasattr(plugin, "partition")
)


REPORTERS = Valid(
    "each with methods init and close",
    lambda plugins: all(hasattr(plugin, "init") and hasattr(plugin, "close") for plugin in plugins),
)

AUTO_LINGER_MS = 100
"""The bound of pipeline=auto where linger.ms is not given: enough for windows of 5 and round trips of 500 ms."""

SSL_CONTEXT = Valid("an ssl.SSLContext", lambda context: isinstance(context, ssl.SSLContext))

NO_PUSH = Valid("false", lambda wanted: not wanted)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What every client of a cluster has (Kafka's ``CommonClientConfigs``). Times are milliseconds, sizes bytes."""

    bootstrap_servers: tuple[str, ...] = key(
        Type.LIST, dataclasses.MISSING, NON_EMPTY, "host:port pairs to find the cluster by, separated by commas."
    )
    client_dns_lookup: str = key(
        Type.STRING,
        "use_all_dns_ips",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "Every address of a host is tried; the second also replaces bootstrap servers by their canonical names.",
    )
    client_id: str = key(Type.STRING, "aioproducer", ANY, "Sent with every request, for the broker's logs and quotas.")
    request_timeout_ms: int = key(Type.INT, 30000, at_least(0), "How long one request may stay unanswered.")
    retry_backoff_ms: int = key(
        Type.LONG, 100, at_least(0), "Wait before the first retry; doubles with each further one."
    )
    retry_backoff_max_ms: int = key(Type.LONG, 1000, at_least(0), "Longest wait before a retry.")
    metadata_max_age_ms: int = key(Type.LONG, 300000, at_least(0), "Metadata older than this is asked for anew.")
    metadata_recovery_strategy: str = key(
        Type.STRING,
        "rebootstrap",
        one_of_in_any_case("none", "rebootstrap"),
        "Whether bootstrap.servers are asked again when none of the known brokers is of use.",
    )
    metadata_recovery_rebootstrap_trigger_ms: int = key(
        Type.LONG,
        300000,
        at_least(0),
        "Known brokers that have given no metadata for this long are forgotten, and the bootstrap servers asked.",
    )
    reconnect_backoff_ms: int = key(Type.LONG, 50, at_least(0), "Wait before connecting again; doubles each time.")
    reconnect_backoff_max_ms: int = key(Type.LONG, 1000, at_least(0), "Longest wait before connecting again.")
    socket_connection_setup_timeout_ms: int = key(
        Type.LONG, 10000, at_least(0), "How long one connection may take to be made; doubles with each failure."
    )
    socket_connection_setup_timeout_max_ms: int = key(
        Type.LONG, 30000, at_least(0), "Longest time allowed for one connection to be made."
    )
    connections_max_idle_ms: int = key(Type.LONG, 540000, at_least(-1), "Idle connections are closed; -1 means never.")
    send_buffer_bytes: int = key(Type.INT, 131072, at_least(-1), "SO_SNDBUF; -1 leaves it to the system.")
    receive_buffer_bytes: int = key(Type.INT, 32768, at_least(-1), "SO_RCVBUF; -1 leaves it to the system.")
    security_protocol: str = key(
        Type.STRING,
        "PLAINTEXT",
        one_of_in_any_case("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
        "Whether connections are encrypted (SSL), and whether brokers are told who the client is (SASL); see "
        "[security.md](security.md).",
    )
    sasl_mechanism: str = key(
        Type.STRING,
        "GSSAPI",
        ANY,
        f"How they are told: {', '.join(MECHANISMS)}. With SASL it has to be given, as Kafka's default is not there.",
    )
    sasl_jaas_config: Password | None = key(
        Type.PASSWORD, None, ANY, "Username and password in the notation of Java's clients."
    )
    sasl_plain_username: str | None = key(
        Type.STRING, None, NON_EMPTY, "The username in place of sasl.jaas.config, whatever the mechanism."
    )
    sasl_plain_password: Password | None = key(Type.PASSWORD, None, ANY, "The password that goes with it.")
    ssl_context: Any = key(
        Type.CLASS, None, SSL_CONTEXT, "An `ssl.SSLContext` for the connections, in place of all other `ssl.` configs."
    )
    ssl_truststore_type: str = key(Type.STRING, "PEM", one_of("PEM"), "The format of the trust store.")
    ssl_truststore_location: str | None = key(
        Type.STRING,
        None,
        ANY,
        "A file with the certificates of those whose word for a broker is believed; without one, those that the system "
        "believes.",
    )
    ssl_truststore_certificates: Password | None = key(Type.PASSWORD, None, ANY, "The same, in place of a file.")
    ssl_keystore_type: str = key(Type.STRING, "PEM", one_of("PEM"), "The format of the key store.")
    ssl_keystore_location: str | None = key(
        Type.STRING, None, ANY, "A file with a key and certificates, for brokers that want to see some."
    )
    ssl_keystore_key: Password | None = key(Type.PASSWORD, None, ANY, "The key itself, in place of a file.")
    ssl_keystore_certificate_chain: Password | None = key(Type.PASSWORD, None, ANY, "The certificates that go with it.")
    ssl_key_password: Password | None = key(Type.PASSWORD, None, ANY, "What the key is encrypted with, if it is.")
    ssl_endpoint_identification_algorithm: str = key(
        Type.STRING,
        "https",
        Valid("https, or empty", lambda value: value.lower() in ("https", "")),
        "Whether a broker's certificate has to be for its host; empty: it need not.",
    )

    @property
    def credentials(self) -> Credentials | None:
        """Who brokers are told that this client is; None if nobody asks. Raises :class:`ConfigException`."""
        return credentials_of(
            self.security_protocol,
            self.sasl_mechanism,
            self.sasl_jaas_config,
            self.sasl_plain_username,
            self.sasl_plain_password,
        )

    @property
    def rebootstraps(self) -> bool:
        return self.metadata_recovery_strategy.lower() == "rebootstrap"

    # What only producers let their users choose.

    @property
    def max_in_flight_requests_per_connection(self) -> int:
        return 100

    @property
    def max_request_size(self) -> int:
        return 1048576

    @property
    def metadata_max_idle_ms(self) -> int:
        return 300000


@dataclass(frozen=True, slots=True)
class ProducerConfig(ClientConfig):
    """The configs of a producer, parsed and checked. Times are milliseconds, sizes bytes, unless the text says else."""

    key_serializer: Any = key(
        Type.CLASS,
        None,
        SERIALIZER,
        "Turns a key into bytes; without one, keys must be bytes or None. An object, a class to make one of, the name "
        "of either, or a plain callable; `aioproducer.serializers` has those of Kafka.",
    )
    value_serializer: Any = key(
        Type.CLASS, None, SERIALIZER, "Turns a value into bytes; without one, values must be bytes or None."
    )
    interceptor_classes: tuple[Any, ...] = key(
        Type.CLASSES,
        (),
        INTERCEPTORS,
        "What sees every record before it is sent, and its end, in this order: objects, classes to make them of, the "
        "names of either, or plain callables; see `aioproducer.ProducerInterceptor`.",
    )
    acks: str = key(
        Type.STRING, "all", one_of("all", "-1", "0", "1"), "Who must have a record before it counts as delivered."
    )
    enable_idempotence: bool = key(
        Type.BOOLEAN, True, ANY, "Retries neither double nor reorder records; needs acks=all and retries above 0."
    )
    transactional_id: str | None = key(
        Type.STRING, None, NON_EMPTY, "Names the producer over restarts, and makes its records belong to transactions."
    )
    transaction_timeout_ms: int = key(
        Type.INT, 60000, ANY, "A transaction that has not ended after this long is aborted by its coordinator."
    )
    batch_size: int = key(
        Type.INT, 16384, between(0, INT_MAX), "A batch is sent when it has this many bytes; 0 means 1."
    )
    linger_ms: int = key(Type.LONG, 5, at_least(0), "How long a batch that is not full waits for more records.")
    pipeline: str = key(
        Type.STRING,
        "fixed",
        one_of("fixed", "auto"),
        "With auto a batch that is not full leaves when the line has a place for it, by round trip, window and "
        "arrivals as they are measured; linger.ms is then the longest it may wait, and 100 if not given.",
    )
    buffer_memory: int = key(
        Type.LONG,
        33554432,
        at_least(0),
        "Bytes that records may take, bookkeeping included, while they wait or are under way.",
    )
    parked_memory: int = key(
        Type.LONG,
        16777216,
        at_least(0),
        "Bytes that records of send() may take, bookkeeping included, while they wait for metadata or memory.",
    )
    max_block_ms: int = key(
        Type.LONG, 60000, at_least(0), "How long a record may wait for metadata and memory together."
    )
    max_request_size: int = key(
        Type.INT, 1048576, at_least(0), "Largest record, and largest request of several batches."
    )
    max_in_flight_requests_per_connection: int = key(
        Type.INT, 5, at_least(1), "Requests a connection may have unanswered."
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
        "Batches with so many bytes, uncompressed, are compressed in a worker thread, smaller ones on the event loop; "
        "-1 is what takes about a millisecond with the codec and its level.",
    )
    partitioner_class: Any = key(
        Type.CLASS,
        None,
        PARTITIONER,
        "Chooses the partition of each record that names none; without one, its key does, and partitions have their "
        "turns for records without a key. An object, a class to make one of, the name of either, or a plain callable "
        "(see `aioproducer.partitioners`).",
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
    client_rack: str = key(Type.STRING, "", ANY, "Where this producer is, as broker.rack tells it of the brokers.")
    metadata_max_idle_ms: int = key(Type.LONG, 300000, at_least(5000), "A topic unused for this long is forgotten.")

    metric_reporters: tuple[Any, ...] = key(
        Type.CLASSES,
        (),
        REPORTERS,
        "Who publishes the metrics elsewhere: classes, objects or import paths, such as "
        "`aioproducer.metrics_topic.MetricsTopicReporter`.",
    )
    enable_metrics_push: bool = key(
        Type.BOOLEAN, False, NO_PUSH, "Brokers are not sent the client's metrics (KIP-714) in this version."
    )
    metrics_num_samples: int = key(Type.INT, 2, at_least(1), "Windows of time that rates and averages are over.")
    metrics_sample_window_ms: int = key(Type.LONG, 30000, at_least(0), "How long such a window is.")
    metrics_recording_level: str = key(
        Type.STRING, "INFO", one_of("INFO", "DEBUG", "TRACE"), "How much is measured; DEBUG adds queue times per topic."
    )

    @property
    def required_acks(self) -> int:
        """``acks`` as the protocol has it: -1, 0 or 1."""
        return -1 if self.acks in ("all", "-1") else int(self.acks)

    @property
    def adaptive_partitioning(self) -> bool:
        """Not with a partitioner of the user's own: there is nothing for it to decide then."""
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


# Kafka has these and this version does not: refused by name instead of being ignored.
_UNSUPPORTED_BY_ALL = (
    "metadata.cluster.check.enable",
    "config.providers",
    "security.providers",
    "auto.include.jmx.reporter",
    "ssl.",
    "sasl.",
)
UNSUPPORTED_BY_CLIENTS = (*_UNSUPPORTED_BY_ALL, "metric.reporters", "metrics.", "enable.metrics.push")
UNSUPPORTED = (
    *_UNSUPPORTED_BY_ALL,
    "transaction.two.phase.commit.enable",
)

C = TypeVar("C", bound=ClientConfig)


def client_config(
    config_class: type[C],
    given: Mapping[str, object],
    *,
    owner: str,
    unsupported: Sequence[str] = UNSUPPORTED_BY_CLIENTS,
) -> C:
    """A client's configs, checked one by one; ``owner`` is the kind of client, for messages."""
    config = parse(config_class, given, unsupported=unsupported, owner=owner)
    if config.credentials is not None and config.sasl_mechanism != PLAIN:
        scramp()  # now, and not with the first connection
    return _with_tls(config)


def _with_tls(config: C) -> C:
    """With the context that the other configs come to: files are read now, and not with the first connection."""
    rows = [row for name, row in table(type(config)).items() if name.startswith("ssl.")]
    given = [row.name for row in rows if getattr(config, row.name.replace(".", "_")) != row.default]
    if not config.security_protocol.upper().endswith("SSL"):
        if given:
            raise ConfigException(
                f"config {given[0]!r} is for connections with TLS, and security.protocol is {config.security_protocol}:"
                " set SSL or SASL_SSL, or leave it out",
                name=given[0],
            )
        return config
    if config.ssl_context is None:
        checks_hostname = config.ssl_endpoint_identification_algorithm != ""
        return dataclasses.replace(config, ssl_context=client_context(config, checks_hostname=checks_hostname))
    if len(given) > 1:
        raise ConfigException(f"config {given[1]!r}: ssl.context is there, too: leave one of them out", name=given[1])
    return config


def producer_config(given: Mapping[str, object]) -> ProducerConfig:
    """The user's configs, checked one by one and against each other (``ProducerConfig.postProcess…`` in Kafka)."""
    config = client_config(ProducerConfig, given, owner="producer", unsupported=UNSUPPORTED)
    explicit = {name.replace(".", "_") for name in given}
    if config.batch_size > config.buffer_memory:
        raise ConfigException(
            f"batch.size is {config.batch_size}; not even one batch fits into buffer.memory={config.buffer_memory}",
            name="batch.size",
            value=config.batch_size,
        )
    if config.partitioner_rack_aware and not config.client_rack.strip():
        raise ConfigException("partitioner.rack.aware=true needs client.rack", name="client.rack", value="")
    if config.pipeline == "auto" and "linger_ms" not in explicit:
        config = dataclasses.replace(config, linger_ms=AUTO_LINGER_MS)
    config = _with_idempotence(config, explicit)
    return _with_delivery_timeout(config, explicit)


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
        # Only defaulted idempotence gives way: whoever asked for weak acks or no retries meant it (KIP-679).
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
