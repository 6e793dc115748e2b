"""The configs of producers and other clients as type checkers and editors know them.

Written by ``python scripts/config_types.py`` from the tables of configs; do not edit.
"""

from collections.abc import Sequence
from ssl import SSLContext
from typing import Literal, Required, TypedDict

from aioproducer.configs.plugin_types import (
    ContextFactoryLike,
    InterceptorLike,
    PartitionerLike,
    ReporterLike,
    TokenProviderLike,
)
from aioproducer.security.password import Password


class ClientOptions(TypedDict, total=False):
    """What every client of a cluster may be given."""

    config_providers: str | Sequence[str]
    """Where references such as `${file:/path:key}` in values of configs are looked up: file, directory, env, and names
    with a config `config.providers.NAME.class`; see docs/security.md.

    ``config.providers``. Default: empty.
    """

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    """Every address of a host is tried; the second also replaces bootstrap servers by their canonical names.

    ``client.dns.lookup``: one of use_all_dns_ips, resolve_canonical_bootstrap_servers_only. Default: use_all_dns_ips.
    """

    client_id: str
    """Sent with every request, for the broker's logs and quotas.

    ``client.id``: 0 to 32000 bytes in UTF-8. Default: aioproducer.
    """

    request_timeout_ms: int
    """How long one request may stay unanswered.

    ``request.timeout.ms``: milliseconds, at least 0. Default: 30000.
    """

    retry_backoff_ms: int
    """Wait before the first retry; doubles with each further one.

    ``retry.backoff.ms``: milliseconds, at least 0. Default: 100.
    """

    retry_backoff_max_ms: int
    """Longest wait before a retry.

    ``retry.backoff.max.ms``: milliseconds, at least 0. Default: 1000.
    """

    metadata_max_age_ms: int
    """Metadata older than this is refreshed.

    ``metadata.max.age.ms``: milliseconds, at least 0. Default: 300000.
    """

    metadata_recovery_strategy: Literal["NONE", "REBOOTSTRAP", "none", "rebootstrap"]
    """Whether to go back to bootstrap.servers when none of the known brokers can be used.

    ``metadata.recovery.strategy``: one of none, rebootstrap. Default: rebootstrap.
    """

    metadata_recovery_rebootstrap_trigger_ms: int
    """If the known brokers give no metadata for this long, they are forgotten and the bootstrap servers are asked.

    ``metadata.recovery.rebootstrap.trigger.ms``: milliseconds, at least 0. Default: 300000.
    """

    reconnect_backoff_ms: int
    """Wait before connecting again; doubles each time.

    ``reconnect.backoff.ms``: milliseconds, at least 0. Default: 50.
    """

    reconnect_backoff_max_ms: int
    """Longest wait before connecting again.

    ``reconnect.backoff.max.ms``: milliseconds, at least 0. Default: 1000.
    """

    socket_connection_setup_timeout_ms: int
    """How long setting up one connection may take; doubles with each failure.

    ``socket.connection.setup.timeout.ms``: milliseconds, at least 0. Default: 10000.
    """

    socket_connection_setup_timeout_max_ms: int
    """Longest time allowed for setting up one connection.

    ``socket.connection.setup.timeout.max.ms``: milliseconds, at least 0. Default: 30000.
    """

    connections_max_idle_ms: int
    """Idle connections are closed; -1 means never.

    ``connections.max.idle.ms``: milliseconds, at least -1. Default: 540000.
    """

    send_buffer_bytes: int
    """SO_SNDBUF; -1 leaves it to the system. If it is not given, this is the size at first: a producer doubles it, up
    to four times, on fast and long lines, and halves it when such a line becomes slow.

    ``send.buffer.bytes``: bytes, at least -1. Default: 131072.
    """

    receive_buffer_bytes: int
    """SO_RCVBUF; -1 leaves it to the system.

    ``receive.buffer.bytes``: bytes, at least -1. Default: 32768.
    """

    security_protocol: Literal[
        "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "plaintext", "ssl", "sasl_plaintext", "sasl_ssl"
    ]
    """Whether connections are encrypted (SSL), and whether the client authenticates by SASL; see docs/security.md.

    ``security.protocol``: one of plaintext, ssl, sasl_plaintext, sasl_ssl. Default: PLAINTEXT.
    """

    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"] | None
    """One of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI. Required with SASL.

    ``sasl.mechanism``. Default: None.
    """

    sasl_jaas_config: str | Password | None
    """Username and password, or what OAUTHBEARER or GSSAPI needs, in the notation of Java's clients.

    ``sasl.jaas.config``. Default: None.
    """

    sasl_plain_username: str | None
    """The username, instead of sasl.jaas.config, for PLAIN and SCRAM.

    ``sasl.plain.username``: non-empty. Default: None.
    """

    sasl_plain_password: str | Password | None
    """The password that goes with it.

    ``sasl.plain.password``. Default: None.
    """

    sasl_oauth_token_provider: TokenProviderLike | None
    """Gets tokens for OAUTHBEARER: a callable that returns an `aioproducer.OAuthBearerToken` or a JWT as str, or an
    object with such a method `token`; also a class, or the import path of any of these. A coroutine function is
    awaited, any other is called in a thread.

    ``sasl.oauth.token.provider``: a callable, or an object with a method token. Default: None.
    """

    sasl_oauthbearer_token_endpoint_url: str | None
    """The identity provider's token endpoint, https://… (or http://…), or a file with a token, file:///….

    ``sasl.oauthbearer.token.endpoint.url``. Default: None.
    """

    sasl_oauthbearer_client_credentials_client_id: str | None
    """What the identity provider knows this client by.

    ``sasl.oauthbearer.client.credentials.client.id``. Default: None.
    """

    sasl_oauthbearer_client_credentials_client_secret: str | Password | None
    """The secret that goes with it.

    ``sasl.oauthbearer.client.credentials.client.secret``. Default: None.
    """

    sasl_oauthbearer_scope: str | None
    """The scope that tokens are requested for.

    ``sasl.oauthbearer.scope``. Default: None.
    """

    sasl_oauthbearer_sub_claim_name: str
    """The claim that names the client, for messages.

    ``sasl.oauthbearer.sub.claim.name``. Default: sub.
    """

    sasl_oauthbearer_header_urlencode: bool
    """URL-encode client id and secret for the identity provider, as RFC 6749 wants it.

    ``sasl.oauthbearer.header.urlencode``. Default: false.
    """

    sasl_oauthbearer_jwt_retriever_class: str
    """How tokens are requested. The default reads a file or sends client credentials, by the URL; JwtBearerJwtRetriever
    exchanges an assertion for a token.

    ``sasl.oauthbearer.jwt.retriever.class``: one of DefaultJwtRetriever, ClientCredentialsJwtRetriever,
    JwtBearerJwtRetriever, FileJwtRetriever in the package org.apache.kafka.common.security.oauthbearer. Default:
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever.
    """

    sasl_oauthbearer_jwt_validator_class: str
    """How tokens are looked at before they are sent: they need an expiry, and are not verified.

    ``sasl.oauthbearer.jwt.validator.class``: DefaultJwtValidator or ClientJwtValidator in the package
    org.apache.kafka.common.security.oauthbearer. Default:
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator.
    """

    sasl_login_callback_handler_class: str | None
    """Kafka's own handlers, which many a file names for OAUTHBEARER; they do what the client does without one.

    ``sasl.login.callback.handler.class``: one of
    org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler,
    org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler,
    org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler. Default:
    None.
    """

    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "ES256", "rs256", "es256"]
    """The algorithm that signs assertions.

    ``sasl.oauthbearer.assertion.algorithm``: one of RS256, ES256. Default: RS256.
    """

    sasl_oauthbearer_assertion_claim_aud: str | None
    """The audience of assertions.

    ``sasl.oauthbearer.assertion.claim.aud``. Default: None.
    """

    sasl_oauthbearer_assertion_claim_exp_seconds: int
    """How long an assertion is valid.

    ``sasl.oauthbearer.assertion.claim.exp.seconds``: 0 to 86400. Default: 300.
    """

    sasl_oauthbearer_assertion_claim_iss: str | None
    """The issuer of assertions.

    ``sasl.oauthbearer.assertion.claim.iss``. Default: None.
    """

    sasl_oauthbearer_assertion_claim_jti_include: bool
    """Give each assertion a unique id.

    ``sasl.oauthbearer.assertion.claim.jti.include``. Default: false.
    """

    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    """How long before it is made an assertion is valid already: clocks differ.

    ``sasl.oauthbearer.assertion.claim.nbf.seconds``: 0 to 3600. Default: 60.
    """

    sasl_oauthbearer_assertion_claim_sub: str | None
    """The subject of assertions.

    ``sasl.oauthbearer.assertion.claim.sub``. Default: None.
    """

    sasl_oauthbearer_assertion_file: str | None
    """A file with an assertion that is signed already; it is read for each request.

    ``sasl.oauthbearer.assertion.file``. Default: None.
    """

    sasl_oauthbearer_assertion_private_key_file: str | None
    """The key that signs assertions, in PEM; it is read for each request.

    ``sasl.oauthbearer.assertion.private.key.file``. Default: None.
    """

    sasl_oauthbearer_assertion_private_key_passphrase: str | Password | None
    """The password of the key, if it is encrypted.

    ``sasl.oauthbearer.assertion.private.key.passphrase``. Default: None.
    """

    sasl_oauthbearer_assertion_template_file: str | None
    """Further headers and claims of assertions, in JSON: `{"header": {}, "payload": {}}`.

    ``sasl.oauthbearer.assertion.template.file``. Default: None.
    """

    sasl_login_connect_timeout_ms: int | None
    """How long a connection to the identity provider may take; 10000 if not set.

    ``sasl.login.connect.timeout.ms``: milliseconds, at least 0. Default: None.
    """

    sasl_login_read_timeout_ms: int | None
    """How long the identity provider may take to answer; 10000 if not set.

    ``sasl.login.read.timeout.ms``: milliseconds, at least 0. Default: None.
    """

    sasl_login_retry_backoff_ms: int
    """Wait before a token is requested again; doubles with each further failure.

    ``sasl.login.retry.backoff.ms``: milliseconds, at least 0. Default: 100.
    """

    sasl_login_retry_backoff_max_ms: int
    """Longest such wait.

    ``sasl.login.retry.backoff.max.ms``: milliseconds, at least 0. Default: 10000.
    """

    sasl_login_refresh_window_factor: float
    """A token is renewed after this part of its lifetime.

    ``sasl.login.refresh.window.factor``: 0.5 to 1.0. Default: 0.8.
    """

    sasl_login_refresh_window_jitter: float
    """The most that is added to this part, at random.

    ``sasl.login.refresh.window.jitter``: 0.0 to 0.25. Default: 0.05.
    """

    sasl_login_refresh_min_period_seconds: int
    """The least time between two renewals, if the lifetime allows it.

    ``sasl.login.refresh.min.period.seconds``: 0 to 900. Default: 60.
    """

    sasl_login_refresh_buffer_seconds: int
    """The least time from a renewal to the end of a token, if possible.

    ``sasl.login.refresh.buffer.seconds``: 0 to 3600. Default: 300.
    """

    sasl_kerberos_service_name: str | None
    """The first part of the brokers' Kerberos principals, for GSSAPI: kafka in kafka/broker.example@EXAMPLE.COM.

    ``sasl.kerberos.service.name``. Default: None.
    """

    sasl_kerberos_ticket_renew_window_factor: float
    """A Kerberos ticket is renewed after this part of its lifetime.

    ``sasl.kerberos.ticket.renew.window.factor``: 0.0 to 1.0. Default: 0.8.
    """

    sasl_kerberos_ticket_renew_jitter: float
    """The most that is added to this part, at random.

    ``sasl.kerberos.ticket.renew.jitter``: 0.0 to 1.0. Default: 0.05.
    """

    sasl_kerberos_min_time_before_relogin: int
    """The least time between two renewals of a ticket, in milliseconds, if its lifetime allows it.

    ``sasl.kerberos.min.time.before.relogin``: at least 0. Default: 60000.
    """

    ssl_context: SSLContext | None
    """An `ssl.SSLContext` for the connections, instead of all other `ssl.` configs.

    ``ssl.context``: an ssl.SSLContext. Default: None.
    """

    ssl_engine_factory_class: ContextFactoryLike | None
    """Makes an `ssl.SSLContext` for each connection, instead of all other `ssl.` configs: a callable without arguments,
    a class whose objects are such, or the import path of either. It is called in a thread.

    ``ssl.engine.factory.class``: a callable that returns an ssl.SSLContext. Default: None.
    """

    ssl_truststore_type: Literal["JKS", "PKCS12", "PEM", "jks", "pkcs12", "pem"] | None
    """The format of the trust store. If it is not given, the file decides; JKS and PKCS12 stand for each other.

    ``ssl.truststore.type``: one of jks, pkcs12, pem. Default: None.
    """

    ssl_truststore_location: str | None
    """A file with the certificates of the authorities to trust for brokers; without one, the system's are trusted.

    ``ssl.truststore.location``. Default: None.
    """

    ssl_truststore_password: str | Password | None
    """The password of a trust store in Java's formats.

    ``ssl.truststore.password``. Default: None.
    """

    ssl_truststore_certificates: str | Password | None
    """The certificates to trust as PEM text, instead of a file.

    ``ssl.truststore.certificates``. Default: None.
    """

    ssl_keystore_type: Literal["JKS", "PKCS12", "PEM", "jks", "pkcs12", "pem"] | None
    """The format of the key store. If it is not given, the file decides; JKS and PKCS12 stand for each other.

    ``ssl.keystore.type``: one of jks, pkcs12, pem. Default: None.
    """

    ssl_keystore_location: str | None
    """A file with the client's key and certificates, for brokers that ask for them.

    ``ssl.keystore.location``. Default: None.
    """

    ssl_keystore_password: str | Password | None
    """The password of a key store in Java's formats.

    ``ssl.keystore.password``. Default: None.
    """

    ssl_keystore_key: str | Password | None
    """The key as PEM text, instead of a file.

    ``ssl.keystore.key``. Default: None.
    """

    ssl_keystore_certificate_chain: str | Password | None
    """The certificates that go with it.

    ``ssl.keystore.certificate.chain``. Default: None.
    """

    ssl_key_password: str | Password | None
    """The password of the key: in PEM if it is encrypted, in JKS if it is not the key store's.

    ``ssl.key.password``. Default: None.
    """

    ssl_protocol: Literal["TLSv1.3", "TLSv1.2", "TLS"]
    """With TLSv1.2, connections never use TLS 1.3.

    ``ssl.protocol``: one of TLSv1.3, TLSv1.2, TLS. Default: TLSv1.3.
    """

    ssl_enabled_protocols: str | Sequence[str]
    """The protocols that may be used. Those older than TLSv1.2 may be named, and are never used: they are insecure.

    ``ssl.enabled.protocols``: a list of TLSv1.2, TLSv1.3, TLSv1, TLSv1.1, SSLv2Hello, SSLv3. Default: ('TLSv1.2',
    'TLSv1.3').
    """

    ssl_cipher_suites: str | Sequence[str]
    """The cipher suites that may be used, by Java's names or by OpenSSL's; empty: those that OpenSSL considers secure.
    A protocol without any of them is not used.

    ``ssl.cipher.suites``. Default: empty.
    """

    ssl_keymanager_algorithm: Literal["SunX509", "NewSunX509", "PKIX"]
    """Java's ways of choosing a key, which come to the same here.

    ``ssl.keymanager.algorithm``: one of SunX509, NewSunX509, PKIX. Default: SunX509.
    """

    ssl_trustmanager_algorithm: Literal["PKIX", "SunX509"]
    """Java's ways of verifying certificates; OpenSSL verifies as PKIX demands.

    ``ssl.trustmanager.algorithm``: one of PKIX, SunX509. Default: PKIX.
    """

    ssl_endpoint_identification_algorithm: Literal["https", ""]
    """With https, a broker's certificate must be for its host name; empty turns the check off.

    ``ssl.endpoint.identification.algorithm``: https, or empty. Default: https.
    """


class ProducerOptions(ClientOptions, total=False):
    """What a producer may be given, besides its serializers."""

    interceptor_classes: InterceptorLike | Sequence[InterceptorLike]
    """See every record before it is sent, and when it ends, in this order: objects, classes, the names of either, or
    plain callables; see `aioproducer.ProducerInterceptor`.

    ``interceptor.classes``: objects that are callable, or have a method on_send, on_acknowledgement or on_send_error.
    Default: empty.
    """

    acks: Literal["all", "-1", "0", "1", -1, 0, 1]
    """Which replicas must have a record before it is delivered.

    ``acks``: one of all, -1, 0, 1. Default: all.
    """

    enable_idempotence: bool
    """Retries neither duplicate nor reorder records; needs acks=all and retries above 0.

    ``enable.idempotence``. Default: true.
    """

    transactional_id: str | None
    """Identifies the producer across restarts, and enables transactions.

    ``transactional.id``: 1 to 32000 bytes in UTF-8. Default: None.
    """

    transaction_timeout_ms: int
    """A transaction that has not ended after this long is aborted by its coordinator.

    ``transaction.timeout.ms``: milliseconds. Default: 60000.
    """

    transaction_two_phase_commit_enable: bool
    """Transactions take part in a two-phase commit (KIP-939): the coordinator never aborts them for their age. Not
    together with transaction.timeout.ms. The broker must allow it.

    ``transaction.two.phase.commit.enable``. Default: false.
    """

    transaction_group_window_ms: int
    """How long a transaction of units stays open for more of them before it is committed. With 0, units share a commit
    if they end in the same turn of the event loop, or while the commit before is under way.

    ``transaction.group.window.ms``: milliseconds, at least 0. Default: 0.
    """

    batch_size: int
    """A batch is ready to be sent when it has this many bytes, and does not linger any more; 0 means 1.

    ``batch.size``: bytes, 0 to 2147483647. Default: 16384.
    """

    batch_max_size: int
    """A batch that is ready and cannot leave yet takes more records up to this many bytes: from batch.size, with which
    none grows, to max.request.size. If it is not given it gives way to either, and no batch grows with a batch.size of
    0 or 1. Where brokers take only small requests (socket.request.max.bytes), set it to less: they close the connection
    on a larger one without an error, and some connections end until batches are small.

    ``batch.max.size``: 0 to 2147483647. Default: 262144.
    """

    batch_initial_size: int
    """Bytes of buffer.memory that a batch is charged for records when it begins, and by which its charge grows at
    least; at most batch.size, to which it gives way if it is not given.

    ``batch.initial.size``: 0 to 2147483647. Default: 1024.
    """

    linger_ms: int
    """How long a batch that is not full waits for more records; if it is not given, see pipeline.

    ``linger.ms``: milliseconds, at least 0. Default: 5.
    """

    pipeline: Literal["fixed", "auto"]
    """When a batch that is not full leaves. With fixed: after linger.ms; that is the default if linger.ms is given.
    With auto: at once if all its records are awaited, or if some are and a turn of the event loop adds none; otherwise
    the measured round trip, window and arrival of records decide, and linger.ms, 100 if it is not given, is the longest
    wait.

    ``pipeline``: one of fixed, auto. Default: auto.
    """

    buffer_memory: int
    """Bytes that records may take, including bookkeeping, while they wait or are under way.

    ``buffer.memory``: bytes, at least 0. Default: 33554432.
    """

    parked_memory: int
    """The most bytes that unawaited records of send() may take, including bookkeeping, while they wait for serializers,
    metadata or memory.

    ``parked.memory``: bytes, at least 0. Default: 16777216.
    """

    max_block_ms: int
    """How long a record may wait for serializers, metadata and memory together.

    ``max.block.ms``: milliseconds, at least 0. Default: 60000.
    """

    max_request_size: int
    """Largest record, and largest request of several batches. A request of one batch may be as large as batch.size
    where that is more, as in Kafka.

    ``max.request.size``: bytes, at least 0. Default: 1048576.
    """

    max_in_flight_requests_per_connection: int
    """Unanswered requests that a connection may have; fewer while batches are small and the broker takes long.

    ``max.in.flight.requests.per.connection``: at least 1. Default: 5.
    """

    retries: int
    """Attempts beyond the first; prefer delivery.timeout.ms.

    ``retries``: 0 to 2147483647. Default: 2147483647.
    """

    delivery_timeout_ms: int
    """From acceptance to success or failure; at least linger.ms + request.timeout.ms.

    ``delivery.timeout.ms``: milliseconds, at least 0. Default: 120000.
    """

    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    """Codec of whole batches.

    ``compression.type``: one of none, gzip, snappy, lz4, zstd. Default: none.
    """

    compression_gzip_level: int
    """Level for gzip; -1 is the codec's default.

    ``compression.gzip.level``: 1 to 9, or -1. Default: -1.
    """

    compression_lz4_level: int
    """Level for lz4.

    ``compression.lz4.level``: 1 to 17. Default: 9.
    """

    compression_zstd_level: int
    """Level for zstd.

    ``compression.zstd.level``: -131072 to 22. Default: 3.
    """

    compression_thread_bytes: int
    """Batches of at least this many uncompressed bytes are compressed in a worker thread, smaller ones on the event
    loop; -1 means what takes about a millisecond with the codec and its level.

    ``compression.thread.bytes``: bytes, at least -1. Default: -1.
    """

    partitioner_class: PartitionerLike | None
    """Chooses the partition of each record that names none; without one, the key decides, and records without a key go
    to partitions in turn. An object, a class, the name of either, or a plain callable (see `aioproducer.partitioners`).

    ``partitioner.class``: a callable, or an object with a method partition. Default: None.
    """

    partitioner_ignore_keys: bool
    """Spread records with a key as if they had none.

    ``partitioner.ignore.keys``. Default: false.
    """

    partitioner_adaptive_partitioning_enable: bool
    """Records without a key go to partitions with shorter queues more often.

    ``partitioner.adaptive.partitioning.enable``. Default: true.
    """

    partitioner_availability_timeout_ms: int
    """Adaptive partitioning avoids a broker that could take nothing for longer than this; 0 for never.

    ``partitioner.availability.timeout.ms``: milliseconds, at least 0. Default: 0.
    """

    partitioner_rack_aware: bool
    """Records without a key go to partitions led from client.rack, if there are any.

    ``partitioner.rack.aware``. Default: false.
    """

    client_rack: str
    """Where this producer is, as broker.rack says for brokers.

    ``client.rack``. Default: empty.
    """

    metadata_max_idle_ms: int
    """A topic unused for this long is forgotten.

    ``metadata.max.idle.ms``: milliseconds, at least 5000. Default: 300000.
    """

    metric_reporters: ReporterLike | Sequence[ReporterLike]
    """Publish the metrics elsewhere: classes, objects or import paths, such as
    `aioproducer.metrics_topic.MetricsTopicReporter`.

    ``metric.reporters``: each with methods init and close. Default: empty.
    """

    enable_metrics_push: bool
    """Push metrics to the brokers if these subscribe to them (KIP-714); needs the extra `telemetry`.

    ``enable.metrics.push``. Default: true.
    """

    metrics_num_samples: int
    """Time windows that rates and averages cover.

    ``metrics.num.samples``: at least 1. Default: 2.
    """

    metrics_sample_window_ms: int
    """The length of such a window.

    ``metrics.sample.window.ms``: milliseconds, at least 0. Default: 30000.
    """

    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"]
    """How much is measured; DEBUG adds queue times per topic.

    ``metrics.recording.level``: one of INFO, DEBUG, TRACE. Default: INFO.
    """


class ProducerConfigs(ProducerOptions, total=False):
    """The configs of a producer: ``KafkaProducer(**configs, value_serializer=…)``."""

    bootstrap_servers: Required[str | Sequence[str]]
    """host:port pairs to find the cluster by, separated by commas.

    ``bootstrap.servers``: non-empty. Required.
    """


class RetryingOptions(ClientOptions, total=False):
    """What a client may be given that is asked for one thing at a time."""

    default_api_timeout_ms: int
    """How long a call to the cluster may take, including retries.

    ``default.api.timeout.ms``: milliseconds, at least 0. Default: 60000.
    """


class AdminConfigs(RetryingOptions, total=False):
    """The configs of an admin client: ``KafkaAdmin(**configs)``."""

    bootstrap_servers: Required[str | Sequence[str]]
    """host:port pairs to find the cluster by, separated by commas.

    ``bootstrap.servers``: non-empty. Required.
    """


class ReaderConfigs(RetryingOptions, total=False):
    """The configs of a reader: ``PartitionReader(servers, topic, partition, **configs)``."""

    fetch_min_bytes: int
    """The broker waits until it has this many bytes to give.

    ``fetch.min.bytes``: bytes, at least 0. Default: 1.
    """

    fetch_max_wait_ms: int
    """How long the broker waits for fetch.min.bytes.

    ``fetch.max.wait.ms``: milliseconds, at least 0. Default: 500.
    """

    max_partition_fetch_bytes: int
    """Bytes asked for at a time; one batch comes even if it is larger.

    ``max.partition.fetch.bytes``: bytes, 0 to 2147483647. Default: 1048576.
    """

    isolation_level: Literal["read_uncommitted", "read_committed"]
    """Whether records are read whatever becomes of their transaction, or only when it is committed.

    ``isolation.level``: one of read_uncommitted, read_committed. Default: read_uncommitted.
    """


class RegistryOptions(TypedDict, total=False):
    """What the client of a schema registry may be given: ``SchemaRegistryClient(url, **options)``."""

    max_retries: int
    """How often all URLs are asked again before a request fails, after a back-off.

    ``max.retries``: at least 0. Default: 3.
    """

    retries_wait_ms: int
    """Wait before the first retry; doubles with each further one.

    ``retries.wait.ms``: milliseconds, at least 0. Default: 1000.
    """

    retries_max_wait_ms: int
    """Longest wait before a retry.

    ``retries.max.wait.ms``: milliseconds, at least 0. Default: 20000.
    """

    http_connect_timeout_ms: int
    """How long connecting to one URL may take.

    ``http.connect.timeout.ms``: milliseconds, at least 1. Default: 10000.
    """

    http_read_timeout_ms: int
    """How long one URL may take to answer, once it is connected.

    ``http.read.timeout.ms``: milliseconds, at least 1. Default: 10000.
    """

    basic_auth_user_info: str | Password | None
    """user:password for HTTP basic authentication; a URL may have it, too.

    ``basic.auth.user.info``. Default: None.
    """

    bearer_auth_token: str | Password | None
    """A token for HTTP bearer authentication.

    ``bearer.auth.token``. Default: None.
    """

    bearer_auth_token_provider: TokenProviderLike | None
    """Gets tokens, as sasl.oauth.token.provider does for brokers.

    ``bearer.auth.token.provider``: a callable, or an object with a method token. Default: None.
    """

    bearer_auth_issuer_endpoint_url: str | None
    """The token endpoint of an identity provider that gives tokens (OAuth).

    ``bearer.auth.issuer.endpoint.url``: non-empty. Default: None.
    """

    bearer_auth_client_id: str | None
    """What the identity provider knows this client by.

    ``bearer.auth.client.id``: non-empty. Default: None.
    """

    bearer_auth_client_secret: str | Password | None
    """The secret that goes with it.

    ``bearer.auth.client.secret``. Default: None.
    """

    bearer_auth_scope: str | None
    """The scope that tokens are requested for.

    ``bearer.auth.scope``: non-empty. Default: None.
    """

    bearer_auth_logical_cluster: str | None
    """The registry's logical cluster in Confluent Cloud, with a bearer token.

    ``bearer.auth.logical.cluster``: non-empty. Default: None.
    """

    bearer_auth_identity_pool_id: str | None
    """The identity pool in Confluent Cloud, with a bearer token.

    ``bearer.auth.identity.pool.id``: non-empty. Default: None.
    """

    ssl_truststore_type: Literal["JKS", "PKCS12", "PEM", "jks", "pkcs12", "pem"] | None
    """The format of the trust store; if it is not given, the file decides.

    ``ssl.truststore.type``: one of jks, pkcs12, pem. Default: None.
    """

    ssl_truststore_location: str | None
    """A file with the authorities to trust; the system's without one.

    ``ssl.truststore.location``: non-empty. Default: None.
    """

    ssl_truststore_password: str | Password | None
    """The password of a trust store in Java's formats.

    ``ssl.truststore.password``. Default: None.
    """

    ssl_truststore_certificates: str | Password | None
    """The same in PEM, instead of a file.

    ``ssl.truststore.certificates``. Default: None.
    """

    ssl_keystore_type: Literal["JKS", "PKCS12", "PEM", "jks", "pkcs12", "pem"] | None
    """The format of the key store; if it is not given, the file decides.

    ``ssl.keystore.type``: one of jks, pkcs12, pem. Default: None.
    """

    ssl_keystore_location: str | None
    """A file with this client's key and certificate (mTLS).

    ``ssl.keystore.location``: non-empty. Default: None.
    """

    ssl_keystore_password: str | Password | None
    """The password of a key store in Java's formats.

    ``ssl.keystore.password``. Default: None.
    """

    ssl_keystore_key: str | Password | None
    """The key in PEM, instead of a file, with ssl.keystore.certificate.chain.

    ``ssl.keystore.key``. Default: None.
    """

    ssl_keystore_certificate_chain: str | Password | None
    """The certificate in PEM, with those that certify it.

    ``ssl.keystore.certificate.chain``. Default: None.
    """

    ssl_key_password: str | Password | None
    """Opens the key if it is encrypted.

    ``ssl.key.password``. Default: None.
    """

    ssl_protocol: Literal["TLSv1.3", "TLSv1.2", "TLS"]
    """With TLSv1.2, connections never use TLS 1.3.

    ``ssl.protocol``: one of TLSv1.3, TLSv1.2, TLS. Default: TLSv1.3.
    """

    ssl_enabled_protocols: str | Sequence[str]
    """The protocols that may be used.

    ``ssl.enabled.protocols``: a list of TLSv1.2, TLSv1.3, TLSv1, TLSv1.1, SSLv2Hello, SSLv3. Default: ('TLSv1.2',
    'TLSv1.3').
    """

    ssl_cipher_suites: str | Sequence[str]
    """The cipher suites that may be used, by Java's names or by OpenSSL's.

    ``ssl.cipher.suites``. Default: empty.
    """

    ssl_endpoint_identification_algorithm: Literal["https", ""]
    """Whether the certificate of the registry must be for the host in the URL; empty: not.

    ``ssl.endpoint.identification.algorithm``: one of https, . Default: https.
    """

    ssl_context: SSLContext | None
    """Used as it is, instead of all other ssl configs.

    ``ssl.context``: an ssl.SSLContext. Default: None.
    """
