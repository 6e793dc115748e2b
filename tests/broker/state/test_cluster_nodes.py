from __future__ import annotations

from aioproducer.broker.state.cluster_nodes import ClusterNodes, Node


def reached(node_id: int, *listeners: str) -> dict[str, Node]:
    return {listener: Node(node_id, "127.0.0.1", 9092 + node_id) for listener in listeners or ("PLAINTEXT",)}


def make_nodes(count: int) -> ClusterNodes:
    nodes = ClusterNodes(range(count))
    for node_id in range(count):
        nodes.started(node_id, reached(node_id))
    return nodes


def test_the_controller_is_alive() -> None:
    nodes = make_nodes(2)
    assert nodes.controller_id == 0
    nodes.stopped(0)
    assert nodes.controller_id == 1
    nodes.stopped(1)
    assert nodes.controller_id == -1
    assert nodes.coordinator("x") is None


def test_a_node_is_found_by_the_listeners_that_it_advertises_while_it_lives() -> None:
    nodes = make_nodes(3)
    nodes.advertises(1, reached(1, "INTERNAL", "PLAINTEXT"))
    nodes.stopped(2)
    nodes.advertises(2, reached(2, "INTERNAL"))
    assert [node.id for node in nodes.alive("PLAINTEXT")] == nodes.alive_ids == [0, 1]
    assert [node.id for node in nodes.alive("INTERNAL")] == [1]
    assert nodes.find(0, "INTERNAL") is nodes.find(2, "INTERNAL") is nodes.find(3, "INTERNAL") is None
    assert nodes.find(1, "INTERNAL") == Node(1, "127.0.0.1", 9093)


def test_the_first_live_node_in_the_given_order() -> None:
    nodes = make_nodes(3)
    nodes.stopped(2)
    assert nodes.first_alive((2, 1, 0)) == 1
    assert nodes.first_alive((2, 3)) is None


def test_a_coordinator_may_be_moved_to_a_node_and_comes_back_to_it() -> None:
    nodes = make_nodes(3)
    for node_id in (0, 2, 1):
        nodes.move_coordinator("x", node_id)
        assert nodes.coordinator("x") == node_id
    nodes.stopped(1)
    assert nodes.coordinator("x") == 2
    nodes.started(1, reached(1))
    assert nodes.coordinator("x") == 1
