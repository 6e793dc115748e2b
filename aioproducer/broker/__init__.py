"""The embedded broker: a Kafka cluster in this process, for development, demos and tests.

    cluster.py         EmbeddedCluster: starts and stops nodes, and serves tests
    cluster_contents.py   what is in it, for tests to look at and change
    cluster_state.py   what all nodes agree on: topics, leaders, producer ids
    cluster_nodes.py   the nodes: which live, where they are reached, what they coordinate
    topic.py           topics and partitions
    replica_assignment.py which nodes get the replicas of new partitions
    broker_config.py, topic_config.py   the configs of brokers; those of topics
    stored_topic_config.py   those that topics may have and that do nothing
    cluster_configs.py what nodes and topics are configured with, and where from
    dynamic_configs.py which of them may change while a node runs
    config_changes.py  single changes to configs
    config_resource.py what has configs, and changing them
    resource_configs.py   those of groups and of client metrics subscriptions, which are only kept
    broker_server.py   one node, from its ports to its APIs
    socket_server.py   its listeners, and what connects them with its request handlers
    listeners.py       the listeners as configs have them, and the addresses that clients get
    listener_changes.py   those that come and go while a node runs
    end_point.py, listening_socket.py  where a listener listens; a port
    acceptor.py, gate.py  accepts clients; decides which may come in
    new_connections.py those on their way from an acceptor to a processor
    processor.py       the connections of a listener, from bytes to requests and from responses to bytes
    idle_expiry.py, receive_deadlines.py   closes silent connections, and those whose requests arrive too slowly
    connection_quotas.py  how many connections, and how fast: by address, by listener, in all
    connection_overrides.py, override_hosts.py   exceptions for single addresses; their host names
    rate_quota.py, token_bucket.py   an upper bound for a rate, and how long to wait
    client_quotas.py   which quotas users, client ids and addresses have
    client_quota_manager.py   how much of their quotas clients use
    quota_managers.py  throttles clients that use more
    connection_gate.py the gate of a node: carries out what the connection quotas decide
    throttled_sockets.py   connections that are kept only to be closed later
    request_metrics.py, request_log.py   where the time of requests goes; a line for each
    broker_metrics.py, idle_meter.py   the metrics of a node
    broker_topic_metrics.py   the traffic of topics
    channel_builder.py from a socket to a connection that is set up, by TLS or without
    kafka_channel.py, channel_mute_state.py  one connection: one request at a time, in order; why it is not read
    listener_security.py  what a listener asks of its clients before it listens to them
    tls_handshake.py   how a handshake ends that a client does not pass
    sasl_server_authenticator.py, sasl_state.py  authentication of clients: the exchange, and its states
    sasl_servers.py    PLAIN and SCRAM
    listener_users.py, scram_credentials.py  the users of PLAIN and of SCRAM
    authentication_failure.py, authentication_metrics.py  how failed authentications end; counts of both
    failed_logins.py      their lines in the log
    closed_connections.py log lines for connections that a node closes
    memory_pool.py     how much memory the requests of all clients may take
    request_channel.py the queue of requests
    request_handler.py the pool that handles them
    fatal_exit_error.py, failure.py   what stops a node; why a cluster has to be closed
    request.py, response.py  one request, until it is answered; its response
    context.py         what the handlers of a node work with
    kafka_apis.py      from a request to its handler
    handlers/          one file per API
    linear_pattern.py  regular expressions of clients, matched without backtracking
    fetch_sessions.py  what clients fetch again and again, and know of it
    purgatory.py       operations that wait for something to happen, or for their time to be up
    purgatories.py     the purgatories of a node
    delayed_*.py       one such operation; the fetch that waits for records; what waits for replicas
    timing_wheel.py    when things fall due
    faults.py          faults on purpose, as tests define them
    faulty_apis.py     requests and responses that a fault loses or holds up
    faulty_gate.py     connections that a fault refuses
    authorizer.py      who may do what: the interface, and Kafka's StandardAuthorizer
    acl_store.py, acl_messages.py  the ACLs of the cluster; as clients send them
    access.py          what the client of a request may do
    leader_epoch.py, leader_epochs.py  whether a client's idea of who leads, and of the log, is right; where epochs end
    partition_log.py   the log of a partition
    log_index.py       where in it an offset or a timestamp is
    log_checkpoint.py  what it knows of itself, for a restart
    batches.py         where it keeps its batches: in memory, or
    storage/           on disk
    cluster_journal.py the interface that receives everything that must be kept
    log_validator.py   what a batch must be before it is appended
    record_walk.py     whether its records are records: compiled
    producer_state.py  distinguishes retried batches from new ones
    transaction_*.py   transactions: their coordinator, what it knows of one, what a partition knows, their markers
    group_offsets.py, committed_offset.py   what groups have committed; one offset of it
    classic_group.py   the members of a group, and how far they agree
    group_coordinator.py  joins, waits for members, and removes those silent for too long
    coordination.py    what the handlers of a coordinator's APIs share

It shares messages and record batches with the producer (``protocol``, ``records``) and nothing else.
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

__all__ = [
    "AppendFault",
    "Authorizer",
    "BrokerConfig",
    "Client",
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
