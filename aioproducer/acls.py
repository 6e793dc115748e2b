"""Access control lists: who may do what to which resource, as Kafka names it (``org.apache.kafka.common.acl``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource of its type. As a host: every host."""

EVERYBODY: Final = "User:*"
"""The principal that stands for every user."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class ResourceType(IntEnum):
    """What access is granted to."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @classmethod
    def _missing_(cls, value: object) -> ResourceType:
        return cls.UNKNOWN


class PatternType(IntEnum):
    """How the name of an ACL and the names of resources go together."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters: patterns of both types that have this very name."""
    MATCH = 2
    """Only in filters: every pattern that the resource of this name matches."""
    LITERAL = 3
    """The resource of this name; all resources if the name is ``*``."""
    PREFIXED = 4
    """Every resource whose name begins with this."""

    @classmethod
    def _missing_(cls, value: object) -> PatternType:
        return cls.UNKNOWN


class AclOperation(IntEnum):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @classmethod
    def _missing_(cls, value: object) -> AclOperation:
        return cls.UNKNOWN


class AclPermissionType(IntEnum):
    """What an ACL says about the operation. DENY outweighs ALLOW."""

    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    DENY = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: object) -> AclPermissionType:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """One rule: whether a principal (``User:alice``; ``User:*`` for everybody) may do something to a resource."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL
    principal: str
    host: str = WILDCARD
    """The address the client connects from."""
    operation: AclOperation
    permission: AclPermissionType = AclPermissionType.ALLOW

    def __str__(self) -> str:
        what = f"{self.operation.name} on {self.pattern_type.name} {self.resource_type.name} {self.name!r}"
        return f"{self.permission.name} {self.principal!r} from {self.host} to {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBindingFilter:
    """Which ACLs are meant; what is not given is of no account. ``AclBindingFilter()`` matches all."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether it asks for something that is not known here."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    def matches(self, binding: AclBinding) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, binding.resource_type)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermissionType.ANY, binding.permission)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self._matches_pattern(binding)
        )

    def _matches_pattern(self, binding: AclBinding) -> bool:
        wanted, pattern, name = self.pattern_type, binding.pattern_type, self.name
        if wanted not in (PatternType.ANY, PatternType.MATCH, pattern):
            return False
        if name is None:
            return True
        if wanted is not PatternType.MATCH:
            return name == binding.name
        if pattern is PatternType.PREFIXED:
            return name.startswith(binding.name)
        return binding.name in (name, WILDCARD)
