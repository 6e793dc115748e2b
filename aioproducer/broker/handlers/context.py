"""The parts of a node that its handlers use."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.broker.authorization.acl_store import AclStore
from aioproducer.broker.authorization.authorizer import Authorizer, StandardAuthorizer
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.coordinators.group_coordinator import GroupCoordinator
from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.faults.faults import NO_FAULTS, Faults
from aioproducer.broker.handlers.fetch_sessions import FetchSessionCache
from aioproducer.broker.log.batch_scanner import BatchScanner
from aioproducer.broker.purgatory.purgatories import Purgatories
from aioproducer.broker.quotas.quota_managers import QuotaManagers
from aioproducer.broker.requests.broker_topic_metrics import BrokerTopicMetrics
from aioproducer.broker.requests.long_work import LongWork
from aioproducer.broker.requests.request_order import RequestOrder
from aioproducer.broker.requests.response_memory import ResponseMemory
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.telemetry.client_metrics_manager import ClientMetricsManager
from aioproducer.broker.telemetry.received_telemetry import ReceivedTelemetry
from aioproducer.errors import SecurityDisabledException
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.timing.clock import Clock


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """A node: its id, its clock, its faults, and the state that it shares with the other nodes."""

    node_id: int
    state: ClusterState
    clock: Clock
    transactions: TransactionCoordinator
    groups: GroupCoordinator
    purgatories: Purgatories
    threads: BackgroundThreads
    slices: Slices
    """Of all nodes: they share the event loop."""
    long_work: LongWork
    order: RequestOrder
    scanner: BatchScanner
    response_memory: ResponseMemory
    fetch_sessions: FetchSessionCache
    quotas: QuotaManagers
    topic_metrics: BrokerTopicMetrics
    client_metrics: ClientMetricsManager
    telemetry: ReceivedTelemetry
    transaction_version: int
    """The finalized level of the feature ``transaction.version``: 2 is KIP-890's protocol."""
    authorizer: Authorizer | None = None
    """None: all clients may do everything."""
    faults: Faults = NO_FAULTS
    old: bool = False
    """A broker before KIP-1269: Produce up to version 13, and 5 remembered batches, regardless of the config."""

    @property
    def acls(self) -> AclStore:
        """Raises :class:`SecurityDisabledException` without an authorizer that decides by ACLs."""
        if not isinstance(self.authorizer, StandardAuthorizer):
            raise SecurityDisabledException("this broker has no authorizer that decides by ACLs")
        return self.authorizer.acls

    @property
    def config(self) -> BrokerConfig:
        return self.state.config
