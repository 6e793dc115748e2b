from __future__ import annotations

from uuid import UUID

from aioproducer.broker import Partition, PartitionLog, Topic
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.faults.vanished import Vanished, found_in
from tests.broker.raw_clients.batches import NOW_MS, make_batch


def test_a_log_is_whole_with_what_was_deleted_from_its_beginning_also_from_within_a_batch() -> None:
    config = TopicConfig.of({}, BrokerConfig.of({}))
    log = PartitionLog("t-0", config)
    partition = Partition("t", 0, (0,), log, leader=0)
    topic = Topic("t", UUID(int=7), [partition], config, {})
    for _ in range(2):
        log.append(RecordBatch(make_batch(b"a", b"b", b"c")), leader_epoch=0, now_ms=NOW_MS)
    vanished = Vanished()
    for before in (1, 2, 4):
        vanished.retire(found_in(topic, partition, (one for one in log.records() if one.offset < before)))
        log.delete_records(before)
    whole = vanished.whole(topic, partition)
    assert [found.record.offset for found in whole] == [0, 1, 2, 3, 4, 5]
    assert str(whole[4]) == "t-0@4"
