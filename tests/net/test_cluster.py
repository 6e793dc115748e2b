from __future__ import annotations

import dataclasses

import pytest

from aioproducer.net.cluster import NO_TOPIC_ID, Cluster, TopicMetadata


def test_a_snapshot_does_not_change() -> None:
    cluster = Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, ())})
    with pytest.raises(dataclasses.FrozenInstanceError):
        cluster.controller_id = 1  # type: ignore[misc]
    assert cluster == Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, ())})
    assert cluster != Cluster()
