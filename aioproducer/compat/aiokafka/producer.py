"""aiokafka's ``AIOKafkaProducer``, on this package's producer."""

from __future__ import annotations

import asyncio
import random
import ssl
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from types import MethodType, TracebackType
from typing import Any, Final, Self, cast

from aioproducer import Delivery, KafkaError, KafkaProducer
from aioproducer import RecordMetadata as OwnMetadata
from aioproducer.admin import KafkaAdmin
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.aiokafka_metadata import as_aiokafkas
from aioproducer.compat.aiokafka.batch_builder import BatchBuilder, Serializer, as_pairs, whole_milliseconds
from aioproducer.compat.aiokafka.client import UNKNOWN_TOPIC, Client
from aioproducer.compat.aiokafka.configs import (
    MISSING,
    addresses,
    delivery_configs,
    is_default_partitioner,
    memory_configs,
    refused,
    security_configs,
    whole,
    whole_numbers,
)
from aioproducer.compat.aiokafka.error_translation import ErrorTranslation
from aioproducer.compat.aiokafka.future import Ending, RecordFuture, reading_turns, settle
from aioproducer.compat.aiokafka.partitions import Partitioner, available, partition_of
from aioproducer.compat.aiokafka.structs import RecordMetadata
from aioproducer.compat.aiokafka.transactions import Transactions
from aioproducer.configs.client_config import ClientConfig
from aioproducer.configs.config_def import table
from aioproducer.configs.providers import PROVIDERS
from aioproducer.errors import ConfigException
from aioproducer.types import Headers

Future = asyncio.Future[RecordMetadata]  # with acks=0 it ends with None

_CLIENTS = count(1)
_CLIENT_CONFIGS: Final = tuple(name.replace(".", "_") for name in table(ClientConfig) if name != PROVIDERS)
"""Those that the producer and the admin client share; references in their values are replaced already."""
_BACKOFF_MAX_MS: Final = 1000


class AIOKafkaProducer:
    """Replaces aiokafka's class of this name.

    ::

        async with AIOKafkaProducer(bootstrap_servers="localhost:9092") as producer:
            metadata = await producer.send_and_wait("orders", b"value", key=b"42")

    The arguments are aiokafka's (0.14), with its defaults: times in milliseconds, sizes in bytes. Every config of
    :class:`~aioproducer.KafkaProducer` may be given as well, and takes precedence (``delivery_timeout_ms=60_000``). The
    constructor needs no running loop. It rounds fractions up, and raises ConfigException, a ValueError, for impossible
    values; this is a TypeError, too, if a name is unknown or a number is none. Errors are aiokafka's
    (``aioproducer.compat.aiokafka.errors``); ``docs/migrating.md`` says what differs.
    """

    _ending: Ending
    _started = False

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Iterable[str] = "localhost",
        client_id: str | None = None,
        metadata_max_age_ms: float = 300000,
        request_timeout_ms: float = 40000,
        api_version: str | None = None,
        acks: object = MISSING,
        key_serializer: Serializer = None,
        value_serializer: Serializer = None,
        compression_type: str | None = None,
        max_batch_size: float = 16384,
        partitioner: Partitioner | None = None,
        max_request_size: float = 1048576,
        linger_ms: float = 0,
        retry_backoff_ms: float = 100,
        security_protocol: str = "PLAINTEXT",
        ssl_context: ssl.SSLContext | None = None,
        connections_max_idle_ms: float | None = 540000,
        enable_idempotence: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: float = 60000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: object = None,
        **config: Any,
    ) -> None:
        for name, given in (("loop", loop), ("api_version", api_version)):
            if given is not None:
                warnings.warn(f"the argument {name!r} is deprecated, and not needed", DeprecationWarning, stacklevel=2)
        self._loop = loop
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._max_batch_size = whole("max_batch_size", max_batch_size)
        self._partitioner = None if is_default_partitioner(partitioner) else partitioner
        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
        numbers = whole_numbers(
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            max_request_size=max_request_size,
            linger_ms=linger_ms,
            retry_backoff_ms=retry_backoff_ms,
            connections_max_idle_ms=-1 if connections_max_idle_ms is None else connections_max_idle_ms,
        )
        configs: dict[str, Any] = {
            "bootstrap_servers": addresses(servers),
            "client_id": client_id or f"aiokafka-producer-{next(_CLIENTS)}",
            "compression_type": compression_type or "none",
            **numbers,
            "max_block_ms": numbers["request_timeout_ms"],
            "retry_backoff_max_ms": max(numbers["retry_backoff_ms"], _BACKOFF_MAX_MS),
            **memory_configs(self._max_batch_size),
            **delivery_configs(
                acks,
                enable_idempotence=enable_idempotence,
                transactional_id=transactional_id,
                transaction_timeout_ms=transaction_timeout_ms,
                linger_ms=numbers["linger_ms"],
                request_timeout_ms=numbers["request_timeout_ms"],
            ),
            **security_configs(
                security_protocol,
                ssl_context=ssl_context,
                sasl_mechanism=sasl_mechanism,
                sasl_plain_username=sasl_plain_username,
                sasl_plain_password=sasl_plain_password,
                sasl_oauth_token_provider=sasl_oauth_token_provider,
                sasl_kerberos_service_name=sasl_kerberos_service_name,
                sasl_kerberos_domain_name=sasl_kerberos_domain_name,
                others=config,
            ),
            **config,
        }
        try:
            self._producer: KafkaProducer[Any, Any] = KafkaProducer(**configs)
        except ConfigException as error:
            raise refused(error) from error.__cause__
        self._translation = ErrorTranslation(transactional=self._producer.config.transactional_id is not None)
        self._transactions = Transactions(self._producer, self._translation)
        self.client = Client(self._producer, self._translation, servers)
        """As much of aiokafka's client as instrumentation reads."""
        acknowledged = self._producer.config.required_acks != 0
        self._result_of: Callable[[OwnMetadata], Any] = as_aiokafkas if acknowledged else _nothing
        self._known: set[tuple[str, int]] = set()
        """Partitions that exist: Kafka removes none while their topic exists."""
        # Users' classes may override what aiokafka calls for each record. Otherwise those calls are not made.
        overrides = type(self)._serialize is not _OWN_SERIALIZE
        self._serializes = overrides or key_serializer is not None or value_serializer is not None
        self._overrides_partition = type(self)._partition is not _OWN_PARTITION
        self._needs_partition = self._overrides_partition or self._partitioner is not None

    @property
    def _closed(self) -> bool:  # FastStream reads it under this name
        return self._translation.closed

    @property
    def kafka_producer(self) -> KafkaProducer[Any, Any]:
        """The producer underneath: for ``metrics()``, ``health()``, ``explain()``, ``send_many()``."""
        return self._producer

    def __del__(self, _warnings: Any = warnings) -> None:
        if self._started and not self._closed:
            _warnings.warn(f"Unclosed AIOKafkaProducer {self!r}", ResourceWarning, source=self)
            self._ending.loop.call_exception_handler({"producer": self, "message": "Unclosed AIOKafkaProducer"})

    # Life

    async def start(self) -> None:
        """Finds the cluster and takes over the transactional.id, if there is one.

        KafkaConnectionError if no broker has answered within request_timeout_ms.
        """
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise errors.IllegalStateError("the producer was made for another event loop than the running one")
        await self._find_cluster()
        with self._translation.translating():
            await self._producer.start()
            if self._producer.config.transactional_id is not None:
                try:
                    await self._producer.init_transactions()
                except BaseException:
                    await self._producer.close(0)
                    raise
        self._ending = Ending(asyncio.get_running_loop(), self._result_of, reading_turns())
        self._started = True

    async def _find_cluster(self) -> None:
        configs: dict[str, Any] = {name: getattr(self._producer.config, name) for name in _CLIENT_CONFIGS}
        try:
            async with KafkaAdmin(**configs, default_api_timeout_ms=self._producer.config.request_timeout_ms) as admin:
                self.client.know_cluster((await admin.describe_cluster()).cluster_id)
        except KafkaError as error:
            servers = ", ".join(self._producer.config.bootstrap_servers)
            raise errors.KafkaConnectionError(f"Unable to bootstrap from {servers}: {error}") from error

    async def flush(self) -> None:
        """Returns when everything sent so far is delivered or has failed; at once before start() and after stop()."""
        if not self._started:
            return
        with self._translation.translating():
            await self._producer.flush()

    async def stop(self) -> None:
        """Delivers what was accepted, then closes all connections. Stopping twice is harmless."""
        self._translation.closed = True
        try:
            await self._producer.close()
        finally:
            self._started = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # Records

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ProducerClosed("the producer was stopped: make a new one")

    async def partitions_for(self, topic: str) -> set[int]:
        """The topic's partitions; UnknownTopicOrPartitionError if there are none after request_timeout_ms."""
        return await self.client._wait_on_metadata(topic)

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: float | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> Future:
        """Appends a record, and returns a future of its metadata (of None with acks=0).

        Waits up to request_timeout_ms for the topic (UnknownTopicOrPartitionError) and for memory (KafkaTimeoutError).
        If the wait is cancelled, the record is not sent; cancelling the future withdraws nothing. The fraction of
        ``timestamp_ms`` is dropped. Errors of serializers and the partitioner are raised unchanged; TypeError for a key
        or value that is not bytes after serialization.
        """
        try:
            delivery = await self._enqueue(topic, value, key, partition, timestamp_ms, headers)
        except KafkaError as error:
            raise self._translation.translated(error, late=UNKNOWN_TOPIC) from error
        return RecordFuture(delivery, self._ending)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: float | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Sends a record and returns its metadata when it is delivered (None with acks=0).

        Calls :meth:`send` if a subclass has overridden it, or if instrumentation has wrapped it.
        """
        send = self.send
        if type(send) is not MethodType or send.__func__ is not _OWN_SEND:
            return await (await send(topic, value, key, partition, timestamp_ms, headers))
        try:  # without a future, which would take half as much time again
            delivery = await self._enqueue(topic, value, key, partition, timestamp_ms, headers)
        except KafkaError as error:
            raise self._translation.translated(error, late=UNKNOWN_TOPIC) from error
        try:
            metadata: RecordMetadata = self._result_of(await delivery)
        except KafkaError as error:
            raise errors.translated(error) from error
        return metadata

    def create_batch(self) -> BatchBuilder:
        """An empty batch of max_batch_size, to be filled and given to :meth:`send_batch`."""
        return BatchBuilder(
            self._max_batch_size, key_serializer=self._key_serializer, value_serializer=self._value_serializer
        )

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int | None) -> Future:
        """Closes a batch and sends its records, one after the other, to one partition.

        Returns a future of the metadata of its first record (of None if it is empty), done when all have ended;
        it fails with the first error there was. Waits and raises as :meth:`send` does.
        """
        self._check_open()
        with self._translation.translating(late=UNKNOWN_TOPIC):
            partition = await self._choose(topic, partition)
        batch.close()
        future: Future = asyncio.get_running_loop().create_future()
        if not batch.records:
            cast(Any, future).set_result(None)
            return future
        send = self._producer.send
        with self._translation.translating(late=UNKNOWN_TOPIC):
            key, value, timestamp_ms, headers = batch.records[0]
            first = await self._producer.enqueue(
                topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
            # No turn is given in between, so they are together in the log.
            deliveries = [
                send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)
                for key, value, timestamp_ms, headers in batch.records[1:]
            ]
        deliveries.insert(0, first)
        left = len(deliveries)

        def ended(_: Delivery) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                failed = (delivery for delivery in deliveries if delivery.outcome is not None)
                settle(future, next(failed, deliveries[0]), self._result_of)

        for delivery in deliveries:
            delivery.add_done_callback(ended)
        return future

    def _enqueue(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: float | None,
        headers: Iterable[tuple[str, bytes | None]] | None,
    ) -> Coroutine[Any, Any, Delivery]:
        """Every record takes this path, so rare cases are handled elsewhere."""
        if value is None and key is None:
            raise AssertionError("a record needs a key or a value")
        if timestamp_ms is not None and type(timestamp_ms) is not int:
            timestamp_ms = whole_milliseconds(timestamp_ms)
        pairs = None if headers is None else as_pairs(headers)
        key_bytes, value_bytes = self._serialize(key, value, pairs or []) if self._serializes else (key, value)
        if self._needs_partition if partition is None else (topic, partition) not in self._known:
            return self._enqueue_there(topic, value, key, partition, timestamp_ms, pairs, key_bytes, value_bytes)
        return self._producer.enqueue(
            topic, value_bytes, key=key_bytes, partition=partition, timestamp_ms=timestamp_ms, headers=pairs
        )

    async def _enqueue_there(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        key_bytes: Any,
        value_bytes: Any,
    ) -> Delivery:
        self._check_open()
        there = await self._choose(topic, partition, key, value, key_bytes, value_bytes)
        return await self._producer.enqueue(
            topic, value_bytes, key=key_bytes, partition=there, timestamp_ms=timestamp_ms, headers=headers
        )

    async def _choose(self, topic: str, partition: int | None, *record: Any) -> int:
        """What :meth:`_partition` chooses for ``record``: its key and value, before and after serialization."""
        everyone = await self.client._wait_on_metadata(topic)
        there = self._partition(topic, partition, *(record or (None, None, None, None)))
        if there is None:
            return random.choice(available(self.client.partitions(topic)) or list(everyone))
        if partition is not None and not self._overrides_partition:
            self._known.add((topic, partition))
        return there

    # aiokafka calls the next two for each record: subclasses override them, and instrumentation calls them

    def _serialize(self, key: Any, value: Any, headers: Sequence[tuple[str, bytes | None]]) -> tuple[Any, Any]:
        """Key and value as bytes; errors of serializers are raised unchanged."""
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        return key, value

    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int | None:
        """The named partition, or that of the partitioner or of the key; the topic's partitions must be known.

        None if the producer decides when the record joins a batch: without a key, or as configs say.
        """
        infos = self.client.partitions(topic)
        return partition_of(infos, partition, serialized_key, self._partitioner, self._producer.config)

    # Transactions

    async def begin_transaction(self) -> None:
        """From now on records belong to a transaction."""
        await self._transactions.begin()

    async def commit_transaction(self) -> None:
        """Delivers every record of the transaction, and commits it; raises what kept a record from being delivered."""
        await self._transactions.commit()

    async def abort_transaction(self) -> None:
        """Gives up the transaction."""
        await self._transactions.abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction: committed at the end of the block, aborted if that raises or is cancelled.

        It is begun, committed and aborted by the three methods above, which a subclass may override.
        """
        calls = self.begin_transaction, self.commit_transaction, self.abort_transaction
        async with self._transactions.block(*calls):
            yield self

    async def send_offsets_to_transaction(self, offsets: Mapping[Any, int | tuple[int, str]], group_id: str) -> None:
        """Makes a group's offsets (of the next records to read) a part of the transaction.

        ``offsets``: by topic and partition, as a pair, a number or a number and a note.
        """
        await self._transactions.send_offsets(offsets, group_id)


_OWN_SEND: Final = AIOKafkaProducer.send
_OWN_SERIALIZE: Final = AIOKafkaProducer._serialize
_OWN_PARTITION: Final = AIOKafkaProducer._partition


def _nothing(metadata: OwnMetadata) -> None:
    """With acks=0 a delivery has no metadata."""
