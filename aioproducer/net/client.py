"""A cluster as a client sees it: a link per broker, and metadata that is kept fresh."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
from collections.abc import Callable, Generator, Iterable
from random import Random
from typing import TypeVar

from aioproducer.configs.client_config import ClientConfig
from aioproducer.errors import (
    AuthenticationException,
    KafkaError,
    NetworkException,
    RebootstrapRequiredException,
    TimeoutException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.net.addresses import Address, parse_addresses
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.net.host_addresses import canonical
from aioproducer.net.in_slices import call_in_slices, in_slices
from aioproducer.net.link_task import LinkTask, close
from aioproducer.net.metadata.cluster import Cluster, Node
from aioproducer.net.metadata.cluster_changes import ClusterChanges
from aioproducer.net.metadata.metadata import Metadata
from aioproducer.net.security.security import ClientSecurity
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import ELEMENTS
from aioproducer.protocol.messages.metadata import MetadataResponse
from aioproducer.protocol.schema import Request, Response
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)


HEAD_START = 1.0
"""Seconds: a live broker answers sooner, even from the other side of the world."""


def _no_steps() -> Generator[None, None, None]:
    yield from ()


class KafkaClient:
    """Links and metadata. ``on_link(link)`` reports every change of a link, ``on_metadata()`` every answer that takes
    effect. Before an answer takes effect, the client runs ``follow(cluster)``. Both are generators, and the loop has
    turns between their steps. ``on_refused(error)`` reports each failed authentication, of the client or of the broker:
    metadata may then never arrive.

    Bootstrap servers are links with negative ids; they serve until the cluster's own brokers are known, and again when
    none of those can be reached (KIP-899) or gives metadata (KIP-1102), unless metadata.recovery.strategy=none.
    ``creates_topics``: asking for a topic may make the brokers create it.
    """

    def __init__(
        self,
        config: ClientConfig,
        supervisor: Supervisor,
        random: Random,
        *,
        creates_topics: bool = True,
        on_link: Callable[[BrokerLink], None] = lambda link: None,
        follow: Callable[[Cluster], Iterable[None]] = lambda cluster: (),
        on_metadata: Callable[[], Generator[None, None, None]] = _no_steps,
        on_refused: Callable[[AuthenticationException], None] = lambda error: None,
        topics_in_use: Callable[[], Iterable[str]] = tuple,
        metrics: NetworkMetrics | None = None,
    ) -> None:
        self._config = config
        self._supervisor = supervisor
        self._random = random
        self._on_link = on_link
        self._follow = follow
        self._on_metadata = on_metadata
        self._on_refused = on_refused
        self._topics_in_use = topics_in_use
        self._metrics = NetworkMetrics(MetricRegistry()) if metrics is None else metrics
        self._loop = asyncio.get_running_loop()
        self.metadata = Metadata(
            max_age=config.metadata_max_age_ms / 1000,
            max_idle=config.metadata_max_idle_ms / 1000,
            backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random),
            rebootstrap_after=config.metadata_recovery_rebootstrap_trigger_ms / 1000 if config.rebootstraps else None,
            creates_topics=creates_topics,
        )
        self._security = ClientSecurity(config, random, supervisor.launch)
        self.links: dict[int, BrokerLink] = {}
        """Links to the known brokers, by id; bootstrap servers have ids below 0."""
        self._connected: set[BrokerLink] = set()
        """The links that are READY, kept so that a change of one link does not walk through all of a thousand."""
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._retired: list[BrokerLink] = []
        """Links to brokers that are gone or have moved, until their requests have ended."""
        self.metadata_error: KafkaError | None = None
        """Why the last metadata request failed, if it did."""
        self.unreachable_since = math.nan
        """When an attempt to connect failed with no broker connected then or since; NaN while one is connected."""
        self.changes = ClusterChanges()
        """Changes of links and metadata."""
        self._next_try = 0.0
        """When to connect to one more broker, because the others take too long."""
        self._update = asyncio.Event()
        self._rotation = itertools.count(random.randrange(1 << 16))
        self._bootstrap = parse_addresses(config.bootstrap_servers)
        self._spare_buffers: list[bytearray] = []

    def start(self) -> None:
        """Starts to look for the cluster."""
        if self._config.client_dns_lookup == "use_all_dns_ips":
            self._add_bootstrap(self._bootstrap)
        self._supervisor.launch(self._keep_metadata(), "aioproducer metadata")

    def requests_in_flight(self) -> int:
        """Requests without an answer, to all brokers."""
        return sum(link.in_flight() for link in self._all_links())

    def unanswered_since(self) -> float:
        """When the oldest of them was sent; NaN if there is none."""
        oldest = [link.unanswered_since() for link in self._all_links() if link.in_flight()]
        return min(oldest, default=math.nan)

    def transaction_version(self, node_id: int | None) -> int | None:
        """The cluster's ``transaction.version`` as this node reported at the last connection; 0 if it knows none.

        None for a node that is unknown or was never connected.
        """
        versions = self._versions_of(node_id)
        return None if versions is None else versions.finalized("transaction.version")

    def speaks(self, node_id: int | None, api: ApiKey, version: int) -> bool:
        """Whether the node is not known to lack this version of an API."""
        versions = self._versions_of(node_id)
        return versions is None or versions.newest(api) >= version

    def _versions_of(self, node_id: int | None) -> NodeApiVersions | None:
        link = None if node_id is None else self.links.get(node_id)
        return None if link is None or not link.api_versions.known() else link.api_versions

    def add_node(self, node: Node) -> None:
        """Makes a link to a broker that an answer named, such as a coordinator: metadata may not have it yet."""
        if node.node_id not in self.links:
            self._add_link(node.node_id, node.address)

    def use_topic(self, topic: str) -> None:
        """The topic's metadata is wanted from now on."""
        if self.metadata.use_topic(topic, self._loop.time()):
            self._update.set()

    def request_update(self, topic: str | None = None) -> None:
        """Has the metadata of a topic, or of all, requested again."""
        self.metadata.request_update(topic)
        self._update.set()

    def reachable(self) -> bool:
        """Whether there is a connection to any broker."""
        return any(link.ready() for link in self._connected)

    def unreachable(self) -> str:
        """Why the cluster cannot be reached, in words; empty if no reason is known."""
        if self.reachable():
            return ""
        errors = [str(link.last_error) for link in self.links.values() if link.last_error is not None]
        if errors:
            return "no broker can be reached: " + "; ".join(errors)
        return "" if self.metadata.version else "no broker has answered yet"

    async def any_ready(self) -> BrokerLink:
        """The ready link with the fewest requests; connects if there is none.

        Tries one broker at a time, and the next one beside it after HEAD_START seconds. A broker that never answers
        uses up its own socket.connection.setup.timeout.ms but does not delay the others.
        """
        while True:
            ready = [link for link in self.links.values() if link.ready()]
            if ready:
                # Ties take turns: always the same link might be one that does not answer.
                start = next(self._rotation) % len(ready)
                return min(ready[start:] + ready[:start], key=BrokerLink.load)
            now = self._loop.time()
            idle = [link for link in self._candidates() if link.state is LinkState.IDLE]
            connecting = any(link.state is LinkState.CONNECTING for link in self.links.values())
            if idle and (not connecting or now >= self._next_try):
                start = next(self._rotation) % len(idle)
                min(idle[start:] + idle[:start], key=_rank).want()
                self._next_try = now + HEAD_START
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_try if idle else None):
                    await self.changes.next()

    def _candidates(self) -> list[BrokerLink]:
        """The links that may be asked about the cluster."""
        links = list(self.links.values())
        return links if self._config.rebootstraps else [link for link in links if link.node_id >= 0] or links

    async def request(
        self, request: Request, response_class: type[R], *, node_id: int | None = None, at_most: int | None = None
    ) -> R:
        """Asks one broker, or any; what it answers, or TimeoutException after request.timeout.ms.

        ``at_most`` bounds the version.
        """
        allowed = self._config.request_timeout_ms / 1000
        try:
            async with asyncio.timeout(allowed):
                link = await (self.any_ready() if node_id is None else self._ready(node_id))
                return await link.call(request, response_class, at_most)
        except TimeoutError:
            raise TimeoutException(
                f"no answer to {request.API_KEY.name} within {allowed * 1000:.0f} ms (request.timeout.ms); "
                f"{self.unreachable()}"
            ) from None

    async def _ready(self, node_id: int) -> BrokerLink:
        while True:
            link = self.links.get(node_id)
            if link is None:
                raise NetworkException(f"node {node_id} is not among the brokers of the cluster")
            if link.ready():
                return link
            link.want()
            await self.changes.next(node_id)

    async def close(self, grace: float = 0.0) -> None:
        """Closes every connection; the supervisor stops the tasks.

        What was written without an answer to come (acks=0) gets ``grace`` seconds to leave the sockets.
        """
        try:
            await asyncio.gather(*(close(link, grace) for link in self._all_links()))
        finally:
            self.abort(NetworkException("the client was closed"))

    def abort(self, error: KafkaError) -> None:
        """Drops every connection at once; all requests end with ``error`` as the reason."""
        for link in self._all_links():
            link.abort(error)

    def answers_wait(self) -> bool:
        """Whether answers that were received wait for their turns of the loop."""
        return any(link.connection is not None and link.connection.answers_wait() for link in self._all_links())

    def handle_received(self) -> None:
        """Handles at once the answers that wait for their turns of the loop."""
        for link in self._all_links():
            if link.connection is not None:
                link.connection.handle_received()

    def _all_links(self) -> list[BrokerLink]:
        return [*self.links.values(), *self._retired]

    def _add_bootstrap(self, addresses: Iterable[Address]) -> None:
        for number, address in enumerate(addresses, start=1):
            self._add_link(-number, address)

    def _add_link(self, node_id: int, address: Address) -> None:
        most = self._config.max_in_flight_requests_per_connection
        link = BrokerLink(node_id, address, most, on_change=self._link_changed)
        task = LinkTask(
            link,
            self._config,
            self._random,
            security=self._security,
            on_crash=self._supervisor.crash,
            metrics=self._metrics,
            spare_buffers=self._spare_buffers,
        )
        self.links[node_id] = link
        self._tasks[node_id] = self._supervisor.spawn(task.run(), f"aioproducer broker {link}")

    def _drop_link(self, node_id: int, reason: str) -> None:
        link = self.links.pop(node_id)
        self._connected.discard(link)
        self._metrics.forget_node(node_id)
        self.changes.announce()  # nothing else ends the waits for this link
        self._supervisor.cancel(self._tasks.pop(node_id))
        link.retire(NetworkException(f"{link} {reason}"))
        self._retired = [retired for retired in (*self._retired, link) if retired.connection is not None]

    def _link_changed(self, link: BrokerLink) -> None:
        if link.state is LinkState.READY:
            self._connected.add(link)
        else:
            self._connected.discard(link)
        if self._connected:
            self.unreachable_since = math.nan
        elif link.state is LinkState.BACKOFF and link.unreached and math.isnan(self.unreachable_since):
            self.unreachable_since = self._loop.time()
            self.request_update()  # until some broker answers
        if link.state is LinkState.BACKOFF and isinstance(link.last_error, AuthenticationException):
            self.changes.announce_refusal(link.node_id, link.last_error)
            self._on_refused(link.last_error)
        else:
            self.changes.announce()
        if link.state is LinkState.BACKOFF and link.node_id >= 0:
            # If it was lost, and not just idle, it may have moved, or its partitions have other leaders now. If a
            # broker has ended the last connection, only another attempt shows whether any can be reached.
            last = not self._connected and not link.resting
            if last or link.last_error is not None:
                self.request_update()
        self._on_link(link)

    async def _keep_metadata(self) -> None:
        """The metadata task: asks when the rules say so, and applies the answers."""
        if not self.links:
            await self._find_canonical_bootstrap()
        while True:
            await self._until_due()
            response = None
            try:
                async with asyncio.timeout_at(self.metadata.seek(self._loop.time())):
                    response = await self._ask_for_metadata()
            except TimeoutError:
                trigger = self._config.metadata_recovery_rebootstrap_trigger_ms
                self._rebootstrap(f"no metadata for metadata.recovery.rebootstrap.trigger.ms={trigger}")
            if response is not None:
                await self._take_in(response)

    async def _ask_for_metadata(self) -> MetadataResponse | None:
        """The answer; None if there was none."""
        try:
            link = await self.any_ready()
            now = self._loop.time()
            request = await in_slices(self.metadata.requesting(now, self._topics_in_use()))
            at_most = self.metadata.version_for(link.api_versions.newest(ApiKey.METADATA))
            if len(request.topics or ()) > ELEMENTS:
                response = await call_in_slices(link, request, MetadataResponse, at_most)
            else:
                response = await link.call(request, MetadataResponse, at_most)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, f"{link} answered a metadata request with an error")
        except KafkaError as error:
            log.debug("asking for metadata failed: %s", error)
            self.metadata_error = error
            self.metadata.failed(self._loop.time())
            if isinstance(error, RebootstrapRequiredException) and self._config.rebootstraps:
                self._rebootstrap(str(error))
            return None
        self.metadata_error = None
        return response

    async def _find_canonical_bootstrap(self) -> None:
        found = await asyncio.gather(*map(canonical, self._bootstrap))
        self._add_bootstrap(list(dict.fromkeys(itertools.chain.from_iterable(found))))

    def _rebootstrap(self, why: str) -> None:
        """Starts from bootstrap.servers again; requests to the brokers known until now still end there."""
        if not self.metadata.cluster.nodes:
            return
        log.warning("%s: starting again from bootstrap.servers", why, extra={"kafka": {"event": "rebootstrap"}})
        for node_id in [node_id for node_id in self.links if node_id >= 0]:
            self._drop_link(node_id, "is forgotten: the client starts again from bootstrap.servers")
        self.metadata.rebootstrap()

    async def _until_due(self) -> None:
        while (due := self.metadata.next_update()) > self._loop.time():
            self._update.clear()
            try:
                async with asyncio.timeout_at(due):
                    await self._update.wait()
            except TimeoutError:
                return

    async def _take_in(self, response: MetadataResponse) -> None:
        await in_slices(self._adding_nodes(response))  # before they are in force: a thousand links at once take long
        await in_slices(self.metadata.updating(response, self._loop.time(), self._follow))
        self.nodes_changed()
        await in_slices(self._on_metadata())
        self.changes.announce()
        await in_slices(self.metadata.letting_go())

    def _adding_nodes(self, response: MetadataResponse) -> Generator[None, None, None]:
        for broker in response.brokers:
            self.add_node(Node(broker.node_id, Address(broker.host, broker.port), broker.rack))
            yield

    def nodes_changed(self) -> None:
        """Makes the links those of the cluster's present nodes."""
        nodes = self.metadata.cluster.nodes
        for node_id, link in list(self.links.items()):
            node = nodes.get(node_id)
            if node_id >= 0 and node is None:
                self._drop_link(node_id, "is no longer in the cluster")
            elif node is not None and node.address != link.address:
                self._drop_link(node_id, f"has moved to {node.address}")
        for node_id, node in nodes.items():
            if node_id not in self.links:
                self._add_link(node_id, node.address)
        # Otherwise each request would open and close another connection until they have re-authenticated.
        if any(link.node_id >= 0 and not link.reauthenticating for link in self.links.values()):
            self._rest_bootstrap()

    def _rest_bootstrap(self) -> None:
        for link in self.links.values():
            if link.node_id < 0 and link.ready() and link.in_flight() == 0:
                link.rest()


def _rank(link: BrokerLink) -> tuple[bool, float]:
    """The order of attempts: first a broker of the cluster whose last attempt did not fail; then the one tried longest
    ago, so that dead brokers do not keep the client from the others or from the bootstrap servers."""
    return link.node_id < 0 or link.failures > 0, link.changed_at
