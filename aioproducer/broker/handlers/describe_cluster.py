"""DescribeCluster: the cluster's id, its controller, and its nodes as the request's listener advertises them (KIP-700).

Versions 0 to 2. Simplifications: every node may change everything, so the first one that lives is called the
controller; there are no fenced nodes, and without an authorizer every operation is allowed, as in Kafka.
"""

from __future__ import annotations

from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)

_BROKERS, _CONTROLLERS = 1, 2


def handle(context: BrokerContext, request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    kind = message.endpoint_type
    if kind != _BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if kind == _CONTROLLERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(
            error_code=code, error_message=f"this is a broker, type {_BROKERS}, not an endpoint of type {kind}"
        )
    state = context.state
    alive = state.nodes.alive(request.connection.listener)
    nodes = [DescribeClusterBroker(node.id, node.host, node.port, node.rack) for node in alive]
    response = DescribeClusterResponse(
        cluster_id=state.cluster_id, controller_id=state.nodes.controller_id, brokers=nodes
    )
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = Access.of(context, request).cluster_operations()
    return response
