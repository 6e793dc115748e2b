"""The embedded broker: a Kafka cluster in this process, for development, demos and tests.

A listener receives a client's bytes and makes requests of them (network). A request handler takes each request from the
queue; the APIs decode it and pass it to its handler. Handlers change the state of the cluster and the logs of its
partitions at once. A request that must wait, for records, replicas or members, waits in a purgatory. With a data
directory an answer leaves only when everything that it reveals is on disk.

cluster.py         EmbeddedCluster: starts and stops nodes, and serves tests
cluster_contents.py   reads and changes topics, configs, quotas and offsets, for tests
broker_server.py   one node, from its ports to its APIs
kafka_apis.py      decodes requests, and passes them to their handlers
faulty_apis.py     loses and delays requests and responses, as faults say
broker_metrics.py  the metrics of a node
failure.py         the failure because of which a cluster must be closed

network/           listeners and connections: from bytes to requests, from responses to bytes
requests/          the queue of requests, the pool of handlers, and long work in slices
handlers/          one file for each API
authorization/     ACLs: what clients may do
security/          TLS and SASL: who clients are
quotas/            limits for what clients use, and for their connections
configs/           the configs of brokers, topics, groups and listeners
state/             the state that all nodes share: topics, leaders, producer ids
log/               the log of a partition
coordinators/      the coordinators of groups and transactions
telemetry/         the metrics that clients push
purgatory/         operations that wait for a condition or a time-out
storage/           the data directory
faults/            faults that tests define

The broker shares messages and record batches with the producer (``protocol``, ``records``) and nothing else.
"""

from __future__ import annotations

from aioproducer.broker.authorization.authorizer import Authorizer, Client
from aioproducer.broker.cluster import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.faults.faults import AppendFault, Faults, ReceivedRequest, RequestFault
from aioproducer.broker.log.partition_log import LogAppendInfo, PartitionLog
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.broker.telemetry.received_telemetry import ClientPush

__all__ = [
    "AppendFault",
    "Authorizer",
    "BrokerConfig",
    "Client",
    "ClientPush",
    "EmbeddedCluster",
    "FatalExitError",
    "Faults",
    "LogAppendInfo",
    "Partition",
    "PartitionLog",
    "ReceivedRequest",
    "RequestFault",
    "Topic",
    "TopicConfig",
]
