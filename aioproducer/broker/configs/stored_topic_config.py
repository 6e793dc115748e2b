"""The topic configs of Apache Kafka 4.3 that the embedded broker stores without effect."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.configs.config_def import ANY, INT_MAX, LONG_MAX, Type, at_least, between, key

_DAY = 24 * 60 * 60 * 1000
_DELETED_WHEN = "Records are deleted by retention.bytes and by clients."
_NO_COMPACTION = "Nothing is compacted."
_NO_FILES = "The log is in memory, or the broker's own choice."
_NO_SEGMENTS = "Segments have a size only."
_NO_TIERS = "Nothing is kept elsewhere."
_NO_REPLICATION = "Replicas share their log."


@dataclass(frozen=True, slots=True)
class StoredTopicConfig:
    """Configs that tools set routinely. They are accepted, unless Kafka refuses the value.

    The text of each says why it has no effect; DescribeConfigs returns it.
    """

    delete_retention_ms: int = key(Type.LONG, _DAY, at_least(0), _NO_COMPACTION)
    file_delete_delay_ms: int = key(Type.LONG, 60000, at_least(0), _NO_FILES)
    flush_messages: int = key(Type.LONG, LONG_MAX, between(1, LONG_MAX), _NO_FILES)
    flush_ms: int = key(Type.LONG, LONG_MAX, at_least(0), _NO_FILES)
    follower_replication_throttled_replicas: tuple[str, ...] = key(Type.LIST, (), ANY, _NO_REPLICATION)
    index_interval_bytes: int = key(Type.INT, 4096, at_least(0), _NO_FILES)
    leader_replication_throttled_replicas: tuple[str, ...] = key(Type.LIST, (), ANY, _NO_REPLICATION)
    local_retention_bytes: int = key(Type.LONG, -2, at_least(-2), _NO_TIERS)
    local_retention_ms: int = key(Type.LONG, -2, at_least(-2), _NO_TIERS)
    max_compaction_lag_ms: int = key(Type.LONG, LONG_MAX, at_least(1), _NO_COMPACTION)
    min_cleanable_dirty_ratio: float = key(Type.DOUBLE, 0.5, between(0, 1), _NO_COMPACTION)
    min_compaction_lag_ms: int = key(Type.LONG, 0, at_least(0), _NO_COMPACTION)
    preallocate: bool = key(Type.BOOLEAN, False, ANY, _NO_FILES)
    remote_log_copy_disable: bool = key(Type.BOOLEAN, False, ANY, _NO_TIERS)
    remote_log_delete_on_disable: bool = key(Type.BOOLEAN, False, ANY, _NO_TIERS)
    remote_storage_enable: bool = key(Type.BOOLEAN, False, ANY, _NO_TIERS)
    retention_ms: int = key(Type.LONG, 7 * _DAY, at_least(-1), _DELETED_WHEN)
    segment_index_bytes: int = key(Type.INT, 10485760, between(4, INT_MAX), _NO_FILES)
    segment_jitter_ms: int = key(Type.LONG, 0, at_least(0), _NO_SEGMENTS)
    segment_ms: int = key(Type.LONG, 7 * _DAY, at_least(1), _NO_SEGMENTS)
    unclean_leader_election_enable: bool = key(Type.BOOLEAN, False, ANY, _NO_REPLICATION)
