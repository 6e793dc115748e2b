"""What everybody may do without an authorizer: bits of Kafka's ``AclOperation``."""

from __future__ import annotations

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = range(3, 12)
_IDEMPOTENT_WRITE = 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE
)
