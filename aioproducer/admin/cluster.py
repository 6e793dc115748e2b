"""The cluster, as the admin client describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from aioproducer.protocol.messages.metadata import MetadataResponse


class Node(NamedTuple):
    """A broker, by the address that it advertises."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster as its brokers describe it."""

    cluster_id: str | None
    """None if the broker is older than 0.10.1."""
    nodes: tuple[Node, ...]
    """The brokers that are up, by id."""
    controller: Node | None
    """None while there is none. In KRaft mode it is any broker: one that passes requests on to the controller."""


def cluster_description(answer: MetadataResponse) -> ClusterDescription:
    """The description of the cluster in a broker's answer."""
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers}
    in_order = tuple(nodes[node_id] for node_id in sorted(nodes))
    return ClusterDescription(answer.cluster_id, in_order, nodes.get(answer.controller_id))
