"""The embedded broker's configs: Kafka's names, types, defaults and ranges.

Only configs that have an effect are declared here; unknown ones are refused. The configs of topics are in
``topic_config.py``; ``dynamic_configs.py`` says which may change while the broker runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aioproducer.broker.authorization.authorizer import STANDARD, super_users_of
from aioproducer.broker.configs.connection_overrides import MAX_HOST_NAMES, max_connections_overrides
from aioproducer.broker.configs.listener_users import jaas_listener, token_options_of, users_of
from aioproducer.broker.configs.listeners import (
    DEFAULT_LISTENERS,
    DEFAULT_PROTOCOLS,
    LISTENER_CONFIGS,
    LISTENER_LIMITS,
    Listeners,
    listener_config,
    listener_config_name,
    listeners_of,
)
from aioproducer.configs.config_def import (
    ANY,
    INT_MAX,
    LONG_MAX,
    NON_EMPTY,
    ConfigKey,
    Type,
    Valid,
    at_least,
    between,
    checked,
    key,
    list_of,
    one_of,
    parse,
    table,
)
from aioproducer.configs.providers import resolved
from aioproducer.configs.tls_values import CONTEXT_FACTORY, ENABLED_PROTOCOLS, PROTOCOL, STORE_TYPE
from aioproducer.errors import ConfigException
from aioproducer.security.password import Password
from aioproducer.security.sasl import MECHANISMS, PASSWORD_MECHANISMS


def _are_overrides(text: str) -> bool:
    try:
        max_connections_overrides(text)
    except ValueError:
        return False
    return True


OVERRIDES = Valid(
    f"pairs of an IP address or a host name (at most {MAX_HOST_NAMES}) and a number, 10.0.0.1:100,localhost:50",
    _are_overrides,
)
TIMESTAMP_TYPES = one_of("CreateTime", "LogAppendTime")
CODECS = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS = Valid("-1, or 1 to 9", lambda level: level == -1 or 1 <= level <= 9)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The configs of every node of the cluster. Times are in milliseconds, sizes in bytes."""

    listeners: tuple[str, ...] = key(
        Type.LIST,
        (DEFAULT_LISTENERS,),
        ANY,
        "Where a node listens: NAME://host:port for each listener. The port is that of node 0, the others follow; 0:"
        " any free ports. Without a host it is the cluster's.",
    )
    advertised_listeners: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "The addresses that clients get, if they differ: NAME://host:port, port 0 for the listener's own. Clients never"
        " get a listener that is left out.",
    )
    listener_security_protocol_map: str = key(
        Type.STRING, DEFAULT_PROTOCOLS, ANY, "The security protocol of each listener, NAME:PROTOCOL."
    )
    inter_broker_listener_name: str | None = key(
        Type.STRING,
        None,
        ANY,
        "The listener that max.connections does not limit; PLAINTEXT if not set. The nodes of this cluster need no"
        " connections to each other.",
    )
    config_providers: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "Where references such as `${file:/path:key}` in the configs that the broker starts with are looked up: file, "
        "directory, env, and names with a config `config.providers.NAME.class`.",
    )
    auto_create_topics_enable: bool = key(
        Type.BOOLEAN, True, ANY, "Metadata requests create the topics they name, if the client allows it."
    )
    num_partitions: int = key(Type.INT, 1, at_least(1), "Partitions of a topic created without a number of partitions.")
    default_replication_factor: int = key(
        Type.INT, 1, between(1, 2**15 - 1), "Replicas of a topic created without a replication factor."
    )
    delete_topic_enable: bool = key(Type.BOOLEAN, True, ANY, "Whether clients may delete topics.")
    message_max_bytes: int = key(
        Type.INT, 1048588, at_least(0), "Largest record batch (after compression) that is appended."
    )
    min_insync_replicas: int = key(
        Type.INT, 1, at_least(1), "Replicas on live nodes that a produce request with acks=all needs."
    )
    log_message_timestamp_type: str = key(
        Type.STRING, "CreateTime", TIMESTAMP_TYPES, "Whose clock stamps the records: the producer's or the broker's."
    )
    log_message_timestamp_after_max_ms: int = key(
        Type.LONG, 3600000, between(0, LONG_MAX), "How far in the future the timestamp of a record may be."
    )
    log_message_timestamp_before_max_ms: int = key(
        Type.LONG, LONG_MAX, between(0, LONG_MAX), "How far in the past the timestamp of a record may be."
    )
    log_segment_bytes: int = key(
        Type.INT, 1073741824, at_least(1024 * 1024), "Largest append; with a data directory also a file's size."
    )
    log_cleanup_policy: tuple[str, ...] = key(
        Type.LIST,
        ("delete",),
        list_of("compact", "delete"),
        "With compact every record needs a key; without delete clients may not delete records. Nothing is compacted.",
    )
    compression_type: str = key(
        Type.STRING,
        "producer",
        CODECS,
        "The codec that batches are kept in: those of another one are compressed anew. producer: as they were sent.",
    )
    compression_gzip_level: int = key(Type.INT, -1, GZIP_LEVELS, "The level of gzip, where compression.type is that.")
    compression_lz4_level: int = key(Type.INT, 9, between(1, 17), "The level of lz4.")
    compression_zstd_level: int = key(Type.INT, 3, between(-131072, 22), "The level of zstd.")
    log_flush_policy: str = key(
        Type.STRING,
        "always",
        one_of("always", "interval", "never"),
        "With a data directory: whether to sync (fsync) everything before an answer leaves, every "
        "log.flush.interval.ms, or never, which leaves it to the system. Not one of Kafka's.",
    )
    log_flush_interval_ms: int = key(
        Type.LONG, 1000, at_least(1), "Time between syncs with log.flush.policy=interval (Kafka's default: never)."
    )
    log_retention_bytes: int = key(
        Type.LONG, -1, ANY, "The oldest batches are deleted while a partition is larger than this; -1 for never."
    )
    fetch_max_bytes: int = key(
        Type.INT, 57671680, at_least(1024), "Largest fetch response, unless one batch is larger."
    )
    socket_request_max_bytes: int = key(Type.INT, 104857600, between(1, INT_MAX), "Largest request.")
    log_producer_state_batches_to_retain: int = key(
        Type.INT,
        5,
        at_least(5),
        "Batches of each idempotent producer that a partition remembers, to recognise retries (KIP-1269).",
    )
    transaction_max_timeout_ms: int = key(
        Type.INT, 900000, at_least(1), "Longest transaction.timeout.ms that a producer may ask for."
    )
    transaction_two_phase_commit_enable: bool = key(
        Type.BOOLEAN,
        False,
        ANY,
        "Whether transactions may take part in a two-phase commit, and never time out (KIP-939); see "
        "unstable.api.versions.enable.",
    )
    unstable_api_versions_enable: bool = key(
        Type.BOOLEAN,
        False,
        ANY,
        "Whether versions of APIs are offered that Kafka calls unstable: InitProducerId 6, for two-phase commits.",
    )
    max_incremental_fetch_session_cache_slots: int = key(
        Type.INT,
        1000,
        at_least(0),
        "Fetch sessions of a node (KIP-227), which have at most 100,000 partitions together. Others fetch without.",
    )
    fetch_purgatory_purge_interval_requests: int = key(
        Type.INT, 1000, ANY, "Ended fetches are purged from the lists of waiting ones when there are this many."
    )
    producer_purgatory_purge_interval_requests: int = key(
        Type.INT, 1000, ANY, "The same for produce requests that wait for replicas."
    )
    delete_records_purgatory_purge_interval_requests: int = key(
        Type.INT, 1, ANY, "The same for DeleteRecords requests that wait for replicas."
    )
    offset_metadata_max_bytes: int = key(
        Type.INT, 4096, ANY, "Largest metadata that may be committed with an offset, in characters."
    )
    offsets_retention_minutes: int = key(
        Type.INT,
        10080,
        at_least(1),
        "A group loses its offsets this long after its last member left; offsets that it no longer needs, or that were"
        " committed without members, this long after their commit.",
    )
    offsets_retention_check_interval_ms: int = key(
        Type.LONG, 600000, at_least(1), "Time between looks for offsets and groups that have expired."
    )
    transactional_id_expiration_ms: int = key(
        Type.INT, 604800000, at_least(1), "The broker forgets a transactional id that has not been used for this long."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = key(
        Type.INT, 3600000, at_least(1), "Time between looks for transactional ids that have expired."
    )
    group_initial_rebalance_delay_ms: int = key(
        Type.INT,
        0,
        at_least(0),
        "How long the first rebalance of a group waits for more members (Kafka's default is 3000).",
    )
    group_max_session_timeout_ms: int = key(
        Type.INT, 1800000, ANY, "Longest session.timeout.ms of a member of a group."
    )
    group_max_size: int = key(
        Type.INT,
        1000,
        at_least(1),
        "Members of a group, static ones and those that are about to join included (Kafka's default: no limit).",
    )
    group_min_session_timeout_ms: int = key(Type.INT, 6000, ANY, "Shortest session.timeout.ms of a member of a group.")
    num_network_threads: int = key(
        Type.INT, 3, at_least(1), "Tasks of each listener that read and write its connections."
    )
    num_io_threads: int = key(
        Type.INT, 8, at_least(1), "Tasks that handle requests: as many requests at most in one turn of the event loop."
    )
    background_threads: int = key(
        Type.INT,
        10,
        at_least(1),
        "Threads of a node for what would hold up its event loop: to read large or compressed batches, one request at a"
        " time, to resolve host names. Further work waits. The data directory has a thread of its own.",
    )
    queued_max_requests: int = key(
        Type.INT, 500, at_least(1), "Requests that may wait for a handler; while as many do, nothing more is read."
    )
    queued_max_request_bytes: int = key(
        Type.LONG,
        -1,
        ANY,
        "Bytes of requests received and not yet handled; while there are as many, nothing more is read. No limit if 0"
        " or less, else at least socket.request.max.bytes.",
    )
    socket_request_receive_timeout_ms: int = key(
        Type.INT,
        60000,
        ANY,
        "A connection is closed if within this time neither the whole request nor another 256 KiB of it has arrived;"
        " negative for never. Time does not count while the broker does not read. Not one of Kafka's.",
    )
    socket_send_buffer_bytes: int = key(
        Type.INT, 102400, at_least(-1), "SO_SNDBUF of connections; -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = key(
        Type.INT, 102400, at_least(-1), "SO_RCVBUF of connections; -1 leaves it to the system."
    )
    socket_listen_backlog_size: int = key(
        Type.INT, 1024, at_least(1), "Connections that the system may complete before they are accepted (Kafka: 50)."
    )
    max_connections: int = key(Type.INT, INT_MAX, at_least(0), "Connections of a node; further ones wait.")
    max_connections_per_ip: int = key(
        Type.INT, INT_MAX, at_least(0), "Connections of a node from one address; more are closed at once."
    )
    max_connections_per_ip_overrides: str = key(
        Type.STRING,
        "",
        OVERRIDES,
        "Exceptions for single addresses: 127.0.0.1:100,::1:200. A host name stands for all its addresses, which"
        " are resolved when a node starts and when this config changes.",
    )
    max_connection_creation_rate: int = key(
        Type.INT, INT_MAX, at_least(0), "New connections per second of a node; those that come too soon wait."
    )
    quota_window_num: int = key(Type.INT, 11, at_least(1), "Number of windows for measuring the rates of quotas.")
    quota_window_size_seconds: int = key(Type.INT, 1, at_least(1), "The length of each window.")
    controller_quota_window_num: int = key(Type.INT, 11, at_least(1), "As quota.window.num, for topics and partitions.")
    controller_quota_window_size_seconds: int = key(Type.INT, 1, at_least(1), "The length of each window.")
    telemetry_max_bytes: int = key(
        Type.INT,
        1048576,
        at_least(1),
        "The most bytes of metrics that a client may push at once, compressed or not (KIP-714).",
    )
    connections_max_idle_ms: int = key(
        Type.LONG, 600000, ANY, "A connection without requests for this long is closed; negative for never."
    )
    sasl_enabled_mechanisms: tuple[str, ...] = key(
        Type.LIST,
        PASSWORD_MECHANISMS,
        list_of(*MECHANISMS),
        "How clients of SASL listeners may authenticate (Kafka's default, GSSAPI, is not supported).",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = key(
        Type.STRING,
        None,
        ANY,
        "The public keys that tokens (OAUTHBEARER) are signed with: an identity provider's https://… (or http://…), or"
        " file:///….",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = key(
        Type.LONG, 3600000, at_least(1), "How often the identity provider is asked for its keys again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = key(
        Type.LONG, 100, at_least(0), "Wait before it is asked again if that fails; doubles with each further failure."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = key(Type.LONG, 10000, at_least(0), "Longest such wait.")
    sasl_oauthbearer_expected_audience: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "A token must have one of these as its audience (claim aud); by default, tokens with an audience are refused.",
    )
    sasl_oauthbearer_expected_issuer: str | None = key(
        Type.STRING, None, ANY, "A token must be issued by this one (claim iss); without it any issuer will do."
    )
    sasl_oauthbearer_clock_skew_seconds: int = key(
        Type.INT, 30, at_least(0), "How much the clocks of broker and identity provider may differ."
    )
    sasl_oauthbearer_sub_claim_name: str = key(Type.STRING, "sub", NON_EMPTY, "The claim that is the user.")
    sasl_oauthbearer_scope_claim_name: str = key(
        Type.STRING, "scope", NON_EMPTY, "The claim that is the scope: words, or a list of them."
    )
    sasl_server_max_receive_size: int = key(
        Type.INT, 524288, at_least(0), "Largest request of a client that has not authenticated yet."
    )
    connection_failed_authentication_delay_ms: int = key(
        Type.INT,
        100,
        at_least(0),
        "How long a client that failed to authenticate waits for the error and the end of its connection; less than"
        " connections.max.idle.ms.",
    )
    authorizer_class_name: str = key(
        Type.STRING,
        "",
        Valid(f"empty, or {STANDARD}", lambda name: name in ("", STANDARD)),
        "Decides what clients may do: Kafka's StandardAuthorizer by ACLs. Empty: every client may do everything.",
    )
    super_users: str = key(
        Type.STRING, "", ANY, "Principals who may do everything, separated by semicolons: User:admin;User:CN=ops."
    )
    allow_everyone_if_no_acl_found: bool = key(
        Type.BOOLEAN, False, ANY, "Whether everybody may do everything to a resource that has no ACLs."
    )
    connections_max_reauth_ms: int = key(
        Type.LONG,
        0,
        ANY,
        "How long an authentication is valid: a client that does not re-authenticate in time loses its connection; 0"
        " means for ever.",
    )
    ssl_engine_factory_class: Any = key(
        Type.CLASS,
        None,
        CONTEXT_FACTORY,
        "Makes the `ssl.SSLContext` of each TLS connection, instead of the configs below: a callable without "
        "arguments, or its import path. It is called in a thread.",
    )
    ssl_keystore_type: str | None = key(
        Type.STRING,
        None,
        STORE_TYPE,
        "The format of the key store; if it is not given, the file's.",
    )
    ssl_keystore_location: str | None = key(
        Type.STRING, None, ANY, "A file with the key and the certificates that TLS listeners present."
    )
    ssl_keystore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a key store in Java's formats."
    )
    ssl_keystore_key: Password | None = key(Type.PASSWORD, None, ANY, "The key as PEM text, instead of a file.")
    ssl_keystore_certificate_chain: Password | None = key(Type.PASSWORD, None, ANY, "The certificates that go with it.")
    ssl_key_password: Password | None = key(
        Type.PASSWORD,
        None,
        ANY,
        "The password of the key: in PEM if it is encrypted, in JKS if it is not the key store's.",
    )
    ssl_truststore_type: str | None = key(
        Type.STRING,
        None,
        STORE_TYPE,
        "The format of the trust store; if it is not given, the file's.",
    )
    ssl_truststore_location: str | None = key(
        Type.STRING, None, ANY, "A file with the certificates of the authorities to trust for clients."
    )
    ssl_truststore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a trust store in Java's formats."
    )
    ssl_truststore_certificates: Password | None = key(
        Type.PASSWORD, None, ANY, "The certificates to trust as PEM text, instead of a file."
    )
    ssl_protocol: str = key(
        Type.STRING,
        "TLSv1.3",
        PROTOCOL,
        "With TLSv1.2, connections never use TLS 1.3.",
    )
    ssl_enabled_protocols: tuple[str, ...] = key(
        Type.LIST,
        ("TLSv1.2", "TLSv1.3"),
        ENABLED_PROTOCOLS,
        "The protocols that may be used. Those older than TLSv1.2 may be named, and are never used: they are insecure.",
    )
    ssl_cipher_suites: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "The cipher suites that may be used, by Java's names or by OpenSSL's; empty: the secure ones.",
    )
    ssl_client_auth: str = key(
        Type.STRING,
        "none",
        one_of("required", "requested", "none"),
        "Whether clients present a certificate, too; on SSL listeners its subject is the user.",
    )
    of_listeners: Mapping[str, Any] = field(default_factory=dict)
    """Configs of single listeners by their full name: ``listener.name.internal.max.connections``."""
    users_of_listeners: Mapping[str, Mapping[str, Password]] = field(default_factory=dict)
    """The users of PLAIN by listener: ``listener.name.internal.plain.sasl.jaas.config``."""
    token_options_of_listeners: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The options of ``listener.name.internal.oauthbearer.sasl.jaas.config`` by listener."""

    @staticmethod
    def of(given: Mapping[str, object]) -> BrokerConfig:
        """Parses configs with Kafka's dotted names or their snake_case. Raises :class:`ConfigException`."""
        given = resolved(given)
        own = {name: value for name, value in given.items() if listener_config(name) is not None}
        jaas = {name: value for name, value in given.items() if jaas_listener(name) is not None}
        rest = {name: given[name] for name in given if name not in own and name not in jaas}
        config = parse(BrokerConfig, rest, owner="broker")
        listeners = config.listening.names
        config = replace(
            config,
            of_listeners=_of_listeners(own, listeners),
            users_of_listeners=users_of(jaas, listeners),
            token_options_of_listeners=token_options_of(jaas, listeners),
        )
        super_users_of(config.super_users)
        delay, idle = config.connection_failed_authentication_delay_ms, config.connections_max_idle_ms
        if 0 <= idle <= delay and any(protocol.startswith("SASL") for protocol in config.listening.protocols.values()):
            raise ConfigException(
                f"config 'connection.failed.authentication.delay.ms' is {delay}; it must be less than"
                f" connections.max.idle.ms, {idle}, or no client receives the error of a failed authentication",
                name="connection.failed.authentication.delay.ms",
                value=delay,
            )
        if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
            raise ConfigException(
                f"config 'queued.max.request.bytes' is {config.queued_max_request_bytes}; it must be at least"
                f" socket.request.max.bytes, {config.socket_request_max_bytes}, or the largest request never fits",
                name="queued.max.request.bytes",
                value=config.queued_max_request_bytes,
            )
        return config

    @property
    def listening(self) -> Listeners:
        """The listeners that the four configs describe. Raises :class:`ConfigException`."""
        return listeners_of(
            self.listeners,
            self.advertised_listeners,
            self.listener_security_protocol_map,
            self.inter_broker_listener_name,
        )

    def of_listener(self, listener: str, name: str) -> Any:
        """The listener's own value of one of ``LISTENER_CONFIGS``; None if it has none."""
        return self.of_listeners.get(listener_config_name(listener, name))

    def on_listener(self, listener: str) -> BrokerConfig:
        """The effective configs of one listener, whose own configs override the broker's."""
        own = {
            base.replace(".", "_"): self.of_listener(listener, base)
            for base in LISTENER_CONFIGS
            if base not in LISTENER_LIMITS and self.of_listener(listener, base) is not None
        }
        return replace(self, **own)

    def plain_users(self, listener: str) -> Mapping[str, Password]:
        """The users who may log in to a listener with PLAIN."""
        return self.users_of_listeners.get(listener, {})

    def token_options(self, listener: str) -> Mapping[str, str] | None:
        """The options for OAUTHBEARER tokens without a signature; None if a listener has none."""
        return self.token_options_of_listeners.get(listener)

    def network_threads(self, listener: str) -> int:
        """The ``num.network.threads`` of a listener."""
        own = self.of_listener(listener, "num.network.threads")
        return self.num_network_threads if own is None else own


BROKER_CONFIGS: Mapping[str, ConfigKey] = table(BrokerConfig)


def broker_config(name: str) -> ConfigKey | None:
    """The definition of a config. A listener's own config has the definition of the broker's, under its own name."""
    found = listener_config(name)
    if found is not None:
        return replace(BROKER_CONFIGS[found[0]], name=name)
    if jaas_listener(name) is not None:
        return ConfigKey(name, Type.PASSWORD, None, ANY, "The users who may log in to a listener with a mechanism.")
    return BROKER_CONFIGS.get(name)


def _of_listeners(given: Mapping[str, object], listeners: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, value in given.items():
        base, listener = listener_config(written, listeners) or ("", "")
        name = listener_config_name(listener, base)
        if name in found:
            raise ConfigException(f"config {name!r} is given twice", name=name)
        found[name] = checked(replace(BROKER_CONFIGS[base], name=name), value)
    return found
