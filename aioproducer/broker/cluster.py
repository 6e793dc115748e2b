"""The embedded cluster: one or more brokers in this process, on their own sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from aioproducer.broker.authorization.authorizer import Authorizer, authorizer_of
from aioproducer.broker.broker_metrics import cluster_metrics
from aioproducer.broker.broker_server import BrokerServer
from aioproducer.broker.cluster_contents import ClusterContents
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.configs.listeners import DEFAULT_LISTENERS
from aioproducer.broker.coordinators.group_coordinator import GroupCoordinator
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.failure import Failure
from aioproducer.broker.faults.faults import NO_FAULTS, Faults
from aioproducer.broker.faulty_apis import FaultyApis
from aioproducer.broker.handlers.api_versions import NEWEST_TRANSACTION_VERSION
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.handlers.fetch_sessions import FetchSessionCache
from aioproducer.broker.kafka_apis import KafkaApis
from aioproducer.broker.log.batch_scanner import BatchScanner
from aioproducer.broker.network.gate.listening_socket import Listen, listen
from aioproducer.broker.purgatory.purgatories import Purgatories
from aioproducer.broker.purgatory.purgatory import raise_fatal
from aioproducer.broker.quotas.quota_managers import QuotaManagers
from aioproducer.broker.requests.broker_topic_metrics import BrokerTopicMetrics
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.requests.long_work import LongWork
from aioproducer.broker.requests.request_handler import RequestHandler
from aioproducer.broker.requests.request_order import RequestOrder
from aioproducer.broker.requests.response_memory import ResponseMemory
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cleanup import Cleanup
from aioproducer.broker.state.cluster_journal import IN_MEMORY
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.storage.files import OsFiles
from aioproducer.broker.storage.storage import Storage
from aioproducer.broker.telemetry.client_metrics_manager import ClientMetricsManager
from aioproducer.broker.telemetry.received_telemetry import ClientPush, ReceivedTelemetry
from aioproducer.configs.config_def import INT_MAX
from aioproducer.errors import IllegalStateException
from aioproducer.metrics import MetricsSnapshot
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.tasks.to_the_end import to_the_end
from aioproducer.timing.clock import Clock, SystemClock


class EmbeddedCluster(ClusterContents):
    """A Kafka cluster for development, demos and tests. Real sockets, real protocol, records in memory or on disk.

        async with EmbeddedCluster(nodes=3, configs={"num.partitions": 6}) as cluster:
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)

    ``ports`` has one port for each node; without it, or with 0, any free one is taken. ``advertised`` has the host and
    port that clients get for a node, if they differ from its own. ``racks`` has the rack of each node (Kafka's
    ``broker.rack``). ``configs`` are the brokers' configs with Kafka's names (see ``BrokerConfig``), the same for all
    nodes; unknown or impossible ones raise ``ConfigException``.

    A node may have several listeners, ``configs={"listeners": "PLAINTEXT://:0,INTERNAL://:0"}`` (each needs an entry in
    ``listener.security.protocol.map``). Port 0 is any free port on each node; any other port is that of node 0, and
    node n has that port plus n. Clients get the addresses of the listener that they connected to:
    :meth:`bootstrap_servers_of`. ``listeners`` cannot be combined with ``ports`` or ``advertised``.

    With ``data_dir`` the cluster keeps everything in that directory. A later cluster with as many nodes continues from
    there after a close or a crash. By default (``log.flush.policy=always``) no acknowledged change is lost. Changes in
    process (:meth:`create_topic`) are on disk when :meth:`close` returns, at the latest. Only one process at a time may
    use the directory, and such a cluster can be started only once. If the directory is damaged in a way that no crash
    explains, the start raises ``DataDirectoryException``. With ``recover`` the cluster starts with the readable rest:
    it deletes nothing, and sets aside and logs what it cannot read.

    ``newest_versions`` simulates older brokers: it limits the versions of APIs, by their keys. ``old_nodes`` are
    brokers before KIP-1269 (Produce up to version 13, 5 remembered batches of each producer). ``transaction_version``
    is the finalized level of that feature, 0 to 2; 2 is KIP-890's protocol. For tests that must replay: ``clock`` and
    ``random`` (for the ids of cluster and topics), ``listen`` (opens ports). For tests of faults: ``faults``.

    With ``authorizer.class.name`` in ``configs``, clients may do what ACLs allow (:meth:`create_acls`, or any admin
    client); ``authorizer`` takes an authorizer of your own instead. Without either, every client may do everything.

    The cluster is simpler than Kafka in these ways: all replicas of a partition share one log, so replication costs
    nothing, and lags only on request (:meth:`hold_replica`). A stopped node (:meth:`stop_node`) loses no records.
    Topics are created, leaders move and transactions end at once, except transactions of more than 500 partitions. The
    file of each API, under ``handlers/``, lists further simplifications.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        host: str = "127.0.0.1",
        ports: Sequence[int] | None = None,
        advertised: Mapping[int, tuple[str, int]] | None = None,
        racks: Sequence[str | None] | None = None,
        configs: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        newest_versions: Mapping[int, int] | None = None,
        old_nodes: Collection[int] = (),
        transaction_version: int = NEWEST_TRANSACTION_VERSION,
        random: Random | None = None,
        faults: Faults = NO_FAULTS,
        data_dir: str | PathLike[str] | None = None,
        recover: bool = False,
        authorizer: Authorizer | None = None,
        listen: Listen = listen,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        if ports is not None and len(ports) != nodes:
            raise ValueError(f"{nodes} nodes need as many ports, not {len(ports)}")
        if racks is not None and len(racks) != nodes:
            raise ValueError(f"{nodes} nodes need as many racks, not {len(racks)}")
        broker_config = BrokerConfig.of(configs or {})
        broker_config.listening.check_ports(range(nodes))
        if broker_config.listeners != (DEFAULT_LISTENERS,) and (ports is not None or advertised):
            raise ValueError("listeners and advertised.listeners name the ports: leave ports and advertised out")
        if authorizer is not None and broker_config.authorizer_class_name:
            raise ValueError("an authorizer is given: leave the config authorizer.class.name out")
        self._host = host
        self._racks = racks or [None] * nodes
        self._clock = clock or SystemClock()
        self._failure = Failure()
        self._stopping: set[asyncio.Task[None]] = set()
        self._storage = (
            None if data_dir is None else Storage(OsFiles(Path(data_dir)), self._failure.happen, recover=recover)
        )
        self._journal = journal = IN_MEMORY if self._storage is None else self._storage.journal
        state = ClusterState(range(nodes), broker_config, random, journal)
        offsets = GroupOffsets(journal)
        state.on_topic_deleted.append(offsets.topic_deleted)
        self._slices = slices = Slices(self._clock)
        if self._storage is not None:
            slices.urgent[self._storage.is_urgent] = None
        super().__init__(state, TransactionCoordinator(state, offsets, self._clock, slices, journal))
        self._authorizer = authorizer or authorizer_of(
            state.acls,
            broker_config.authorizer_class_name,
            broker_config.super_users,
            allow_if_no_acl=broker_config.allow_everyone_if_no_acl_found,
        )
        self._groups = GroupCoordinator(state.config, offsets, self._clock, slices)
        config = state.config
        self._cleanups = (
            Cleanup("offsets", config.offsets_retention_check_interval_ms, self._groups.expire, slices),
            Cleanup(
                "transactional ids",
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                self._transactions.expire,
                slices,
            ),
        )
        self._telemetry = ReceivedTelemetry()
        self._transaction_version = transaction_version
        self._advertised = dict(advertised or {})
        self._newest_versions = newest_versions
        self._old_nodes = frozenset(old_nodes)
        self._faults = faults
        self._listen = listen
        # The address of each listener of a node, by its config: a node keeps its ports when it is stopped and started.
        self._end_points: dict[int, dict[EndPoint, EndPoint]] = {}
        for node_id in range(nodes):
            self._end_points[node_id] = self._wanted(node_id, None if ports is None else ports[node_id])
        self._servers: dict[int, BrokerServer] = {}

    async def start(self) -> None:
        """Starts every node that is not running. If one cannot start, those started here are stopped again.

        Raises :class:`DataDirectoryException` if the data directory cannot be used.
        """
        await self._open_storage()
        started: list[int] = []
        try:
            for node_id in self._state.nodes.ids:
                if node_id not in self._servers:
                    await self.start_node(node_id)
                    started.append(node_id)
        except BaseException:
            await to_the_end(self._undo_start(started), "aioproducer broker start")
            raise

    async def _undo_start(self, started: Iterable[int]) -> None:
        for node_id in started:
            await self.stop_node(node_id)
        if self._storage is not None and not self._servers:
            await self._storage.close()

    async def _open_storage(self) -> None:
        if self._storage is not None and not self._storage.is_open:
            await self._storage.open(self._state, self._transactions, self._clock.time_ms())

    async def close(self) -> None:
        """Stops every node properly, even if the caller is cancelled. Records stay readable (:meth:`log`)."""
        await to_the_end(self._close(), "aioproducer broker close")

    async def _close(self) -> None:
        for node_id in tuple(self._servers):
            await self.stop_node(node_id, clean=True)
        await asyncio.gather(*self._stopping)
        for cleanup in self._cleanups:
            cleanup.close()
        self._transactions.close()
        self._groups.close()
        if self._storage is not None:
            await self._storage.close()

    async def failed(self) -> str:
        """Returns the reason when the data directory has failed, or a node stops because of a :class:`FatalExitError`.

        Then close the cluster, and start another one when the cause is removed. After the data directory has failed no
        change is acknowledged; all acknowledged changes are there again after the next start.
        """
        return await self._failure.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # nodes

    async def start_node(self, node_id: int, *, port: int | None = None) -> None:
        """Starts a node on the ports it had before; ``port`` sets another one for its first listener (0: any free one).

        The node becomes the leader of leaderless partitions that have a replica on it.
        """
        if node_id not in self._end_points:
            raise ValueError(f"there is no node {node_id}")
        if node_id in self._servers:
            raise IllegalStateException(f"node {node_id} is running")
        await self._open_storage()
        context = self._context(node_id, on_fatal=lambda error: server.handlers.fatal(error))
        apis: RequestHandler = KafkaApis(context, self._newest_versions)
        if self._storage is not None:
            apis = self._storage.durable(apis)
        if self._faults is not NO_FAULTS:
            apis = FaultyApis(apis, context)
        server = BrokerServer(
            context,
            apis,
            self._listen,
            self._host,
            partial(self._listeners_changed, node_id),
            partial(self._fatal, node_id),
        )
        try:
            opened = await server.open(self._wanted(node_id, port).values())
        except BaseException:
            context.threads.close()
            raise
        self._servers[node_id] = server
        for cleanup in self._cleanups:
            cleanup.start()
        self._state.node_started(node_id, self._listening(node_id, opened))
        try:
            await server.enable_request_processing()
        except BaseException:
            if self._servers.get(node_id) is server:
                await self.stop_node(node_id)
            raise

    def _wanted(self, node_id: int, port: int | None = None) -> dict[EndPoint, EndPoint]:
        """The end points at which a node must listen, by its configs; ``port`` is that of its first listener."""
        before = self._end_points.get(node_id, {})
        said = self._state.configs.broker(node_id).listening.of_node(node_id)
        wanted = {one: before.get(one) or one._replace(host=one.host or self._host) for one in said}
        if port is not None:
            wanted[said[0]] = wanted[said[0]]._replace(port=port)
        return wanted

    def _listening(self, node_id: int, opened: Mapping[str, EndPoint]) -> dict[str, Node]:
        """The addresses by listener that clients get for a node with these open end points."""
        listening = self._state.configs.broker(node_id).listening
        said = listening.of_node(node_id)
        self._end_points[node_id] = {one: opened[one.listener] for one in said if one.listener in opened}
        advertised = {
            name: (end_point.host, end_point.port)
            for name, end_point in listening.advertised_of_node(node_id, opened).items()
        }
        if node_id in self._advertised:  # only possible with a single listener
            advertised[listening.inter_broker] = self._advertised[node_id]
        rack = self._racks[node_id]
        return {name: Node(node_id, host, port, rack) for name, (host, port) in advertised.items()}

    def _listeners_changed(self, node_id: int) -> None:
        server = self._servers.get(node_id)
        if server is not None:
            self._state.nodes.advertises(node_id, self._listening(node_id, server.sockets.end_points))

    async def listeners_changed(self) -> None:
        """Returns when all running nodes have applied a change of their listeners, and have resolved the host names in
        ``max.connections.per.ip.overrides``; both may take a moment. Raises ``OSError`` if a port cannot be opened, and
        ``ConfigException`` if a name cannot be resolved."""
        for server in tuple(self._servers.values()):
            await server.settled()

    def _context(self, node_id: int, on_fatal: Callable[[FatalExitError], object] = raise_fatal) -> BrokerContext:
        threads = BackgroundThreads(
            f"aioproducer-background-{node_id}", self._state.configs.broker(node_id).background_threads
        )
        return BrokerContext(
            node_id,
            self._state,
            self._clock,
            self._transactions,
            self._groups,
            Purgatories(self._clock, self._state.config, on_fatal),
            threads,
            self._slices,
            LongWork(self._slices, self._journal),
            RequestOrder(),
            BatchScanner(threads),
            ResponseMemory(),
            FetchSessionCache(
                self._state.config.max_incremental_fetch_session_cache_slots,
                partial(self._state.random.randint, 1, INT_MAX),
            ),
            QuotaManagers(self._state.client_quotas, self._state.configs.broker(node_id), self._clock),
            BrokerTopicMetrics(),
            ClientMetricsManager(
                self._state.resource_configs, self._state.random, self._state.config.telemetry_max_bytes
            ),
            self._telemetry,
            self._transaction_version,
            self._authorizer,
            self._faults,
            old=node_id in self._old_nodes,
        )

    async def stop_node(self, node_id: int, *, clean: bool = False) -> None:
        """Stops a node like a crash: connections drop, and leaders move to replicas on live nodes, if any.

        A ``clean`` stop first answers the received requests, as far as clients read the answers within a second.
        """
        server = self._servers.pop(node_id, None)
        if server is None:
            raise IllegalStateException(f"node {node_id} is not running")
        if not clean:
            server.crash()  # before leaders move, which would answer waiting requests
        # Before anything is awaited: the node may be started again meanwhile.
        self._state.node_stopped(node_id)
        await (server.shutdown(self._committed) if clean else server.abort())
        server.context.scanner.close()
        server.context.threads.close()
        purgatories = tuple(server.context.purgatories)
        for topic in self._state.topics.values():
            for partition in topic.partitions:
                for purgatory in purgatories:
                    partition.unwatch(purgatory.check_and_complete)

    def _fatal(self, node_id: int, error: FatalExitError) -> None:
        """A handler of the node has raised a fatal error: the node stops."""
        self._failure.happen(f"node {node_id} has stopped: {str(error) or type(error).__name__}")
        server = self._servers.get(node_id)

        async def stop() -> None:
            if server is not None and self._servers.get(node_id) is server:  # else it is being stopped already
                await self.stop_node(node_id)

        task = asyncio.get_running_loop().create_task(stop(), name=f"stop-of-node-{node_id}")
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _committed(self) -> None:
        """Returns when everything that has changed so far is on disk, or when writing has failed, which is logged."""
        if self._storage is not None:
            with contextlib.suppress(OSError):
                await self._storage.commit()

    def metrics(self) -> MetricsSnapshot:
        """The metrics of the running nodes at this moment; those of a single node have the tag ``node-id``.

        ``cluster.metrics().select("RequestMetrics", node_id="node-0", request="Produce")["TotalTimeMs-p99"]``;
        ``docs/broker-metrics.md`` lists them.
        """
        now = self._clock.monotonic()
        return MetricsSnapshot(dict(cluster_metrics(self._servers.values(), now)))

    def telemetry(self) -> list[ClientPush]:
        """The metrics that clients have pushed (KIP-714), in the order in which they came, as far as they are kept: for
        an hour, and of the clients of a user at an address the last 100 pushes and 8 MiB.

        Clients push what subscriptions ask for: :meth:`alter_client_metrics`.
        """
        return self._telemetry.all(self._clock.monotonic())

    def listener(self, node_id: int, name: str | None = None) -> tuple[str, int]:
        """The host and port of a node's first listener, or of the one with this name; port 0 if the node never ran.
        Raises ``ValueError`` if there is no such listener."""
        found = {end_point.listener: end_point for end_point in self._end_points[node_id].values()}
        _, host, port = found[_named(name, list(found))]
        return host, port

    @property
    def delayed_fetches(self) -> int:
        """How many fetch requests wait for records."""
        return sum(server.context.purgatories.fetch.num_delayed for server in self._servers.values())

    @property
    def bootstrap_servers(self) -> str:
        """The advertised ``host:port`` of the running nodes for the first listener, separated by commas."""
        return self._bootstrap_servers(None)

    def bootstrap_servers_of(self, listener: str) -> str:
        """``host:port`` of the running nodes for another listener; empty if it is not advertised. Raises ``ValueError``
        if there is no such listener."""
        return self._bootstrap_servers(listener)

    def _bootstrap_servers(self, name: str | None) -> str:
        names = [end_point.listener for node in self._end_points.values() for end_point in node.values()]
        nodes = self._state.nodes.alive(_named(name, list(dict.fromkeys(names))))
        return ",".join(f"{node.host}:{node.port}" for node in nodes)

    @property
    def cluster_id(self) -> str:
        return self._state.cluster_id


def _named(name: str | None, listeners: Sequence[str]) -> str:
    wanted = listeners[0] if name is None else name.upper()
    if wanted not in listeners:
        raise ValueError(f"there is no listener {wanted}, only {', '.join(listeners)}")
    return wanted
