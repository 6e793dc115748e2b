"""The ACLs of a cluster, found by resource and by principal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aioproducer.acls import (
    CLUSTER_NAME,
    EVERYBODY,
    WILDCARD,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aioproducer.errors import InvalidRequestException, PolicyViolationException
from aioproducer.errors.printable import printable

MAX_ACLS = 20_000
"""Of a cluster. Each takes memory that no config limits; Kafka has no such limit."""

MAX_TEXT = 1000
"""Characters of a name, a principal and a host. Kafka has no such limit."""

_ACLS_AT_ONCE = 500

_Pattern = tuple[ResourceType, PatternType, str]


class Grants(NamedTuple):
    """The ACLs for a resource that may concern a client."""

    found: Sequence[AclBinding]
    """Those of its principal and of everybody."""
    is_guarded: bool
    """Whether the resource has ACLs at all, for whomever."""


class AclStore:
    """All nodes share it; ``on_change`` is called before an ACL is created (True) or deleted (False)."""

    def __init__(self, on_change: Callable[[AclBinding, bool], object] = lambda binding, is_new: None) -> None:
        self._on_change = on_change
        self._all: dict[AclBinding, None] = {}
        self._by_pattern: dict[_Pattern, dict[str, dict[AclBinding, None]]] = {}
        self._by_principal: dict[tuple[ResourceType, str], dict[AclBinding, None]] = {}
        # How many prefixes of each length there are, by type: the only lengths worth trying.
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._all)

    # changes

    def check(self, new: AclBinding) -> None:
        """Raises :class:`InvalidRequestException` for an ACL that means nothing."""
        if new.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
            raise InvalidRequestException(f"{new.resource_type.name} is no resource type that an ACL can have")
        if new.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise InvalidRequestException(f"{new.pattern_type.name} is no pattern type that an ACL can have")
        if new.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
            raise InvalidRequestException(f"{new.operation.name} is no operation that an ACL can have")
        if new.permission not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
            raise InvalidRequestException(f"{new.permission.name} is no permission that an ACL can have")
        if not new.name:
            raise InvalidRequestException("the name of the resource is empty")
        if new.resource_type is ResourceType.CLUSTER and new.name != CLUSTER_NAME:
            raise InvalidRequestException(f"the only resource of type CLUSTER is called {CLUSTER_NAME!r}")
        if ":" not in new.principal:
            raise InvalidRequestException(f"principal {printable(new.principal)} is not TYPE:NAME, such as User:alice")
        if max(map(len, (new.name, new.principal, new.host))) > MAX_TEXT:
            raise InvalidRequestException(f"names, principals and hosts of ACLs have {MAX_TEXT} characters at most")

    def create(self, new: AclBinding) -> bool:
        """Whether it is new. Raises :class:`InvalidRequestException`, and :class:`PolicyViolationException` if there
        are too many."""
        self.check(new)
        if new in self._all:
            return False
        if len(self._all) >= MAX_ACLS:
            raise PolicyViolationException(f"the cluster has {MAX_ACLS} ACLs, and can have no more")
        self._on_change(new, True)
        self.restore(new)
        return True

    def delete(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """Deletes the ACLs that match, and returns them. Raises :class:`InvalidRequestException` for a filter that
        means nothing."""
        return [binding for some in self.deleting(wanted, self.candidates(wanted)) for binding in some]

    def candidates(self, wanted: AclBindingFilter) -> Sequence[AclBinding]:
        """All ACLs that may match a filter: those with its name or its principal, if it has one.

        Raises :class:`InvalidRequestException` for a filter that means nothing.
        """
        if wanted.is_unknown:
            raise InvalidRequestException("the filter has a type, an operation or a permission that is not known here")
        kinds = ResourceType if wanted.resource_type is ResourceType.ANY else (wanted.resource_type,)
        if wanted.name is not None:
            named = [pattern for kind in kinds for pattern in self._patterns_of(kind, wanted.name, wanted.pattern_type)]
            whose = [self._by_pattern[pattern] for pattern in named if pattern in self._by_pattern]
            if wanted.principal is None:
                return [binding for by_principal in whose for of in by_principal.values() for binding in of]
            return [binding for by_principal in whose for binding in by_principal.get(wanted.principal, ())]
        if wanted.principal is not None:
            return [binding for kind in kinds for binding in self._by_principal.get((kind, wanted.principal), ())]
        return tuple(self._all)

    def _patterns_of(self, kind: ResourceType, name: str, wanted: PatternType) -> Iterator[_Pattern]:
        if wanted is PatternType.MATCH:
            yield from self._patterns(kind, name)
        else:
            yield kind, PatternType.LITERAL, name
            yield kind, PatternType.PREFIXED, name

    def deleting(self, wanted: AclBindingFilter, candidates: Sequence[AclBinding]) -> Iterator[list[AclBinding]]:
        """As :meth:`delete`, in steps that take little time; each yields the ACLs that it has deleted."""
        for start in range(0, len(candidates), _ACLS_AT_ONCE):
            found = [binding for binding in candidates[start : start + _ACLS_AT_ONCE] if wanted.matches(binding)]
            found = [binding for binding in found if binding in self._all]  # not deleted between two steps
            for binding in found:
                self._on_change(binding, False)
                self._remove(binding)
            yield found

    def restore(self, binding: AclBinding) -> None:
        """What there was before a restart."""
        kind, name = binding.resource_type, binding.name
        self._all[binding] = None
        principals = self._by_pattern.setdefault((kind, binding.pattern_type, name), {})
        if binding.pattern_type is PatternType.PREFIXED and not principals:
            lengths = self._prefix_lengths.setdefault(kind, {})
            lengths[len(name)] = lengths.get(len(name), 0) + 1
        principals.setdefault(binding.principal, {})[binding] = None
        self._by_principal.setdefault((kind, binding.principal), {})[binding] = None

    def _remove(self, binding: AclBinding) -> None:
        kind, name, principal = binding.resource_type, binding.name, binding.principal
        del self._all[binding]
        pattern = kind, binding.pattern_type, name
        principals = self._by_pattern[pattern]
        del principals[principal][binding]
        if not principals[principal]:
            del principals[principal]
        if not principals:
            del self._by_pattern[pattern]
            if binding.pattern_type is PatternType.PREFIXED:
                lengths = self._prefix_lengths[kind]
                lengths[len(name)] -= 1
                if not lengths[len(name)]:
                    del lengths[len(name)]
        of_principal = self._by_principal[kind, principal]
        del of_principal[binding]
        if not of_principal:
            del self._by_principal[kind, principal]

    # questions

    def __iter__(self) -> Iterator[AclBinding]:
        """In the order in which they were created."""
        return iter(self._all)

    def of_resource(self, kind: ResourceType, name: str, principal: str) -> Grants:
        """What may concern a client with this principal."""
        found: list[AclBinding] = []
        is_guarded = False
        for pattern in self._patterns(kind, name):
            principals = self._by_pattern.get(pattern)
            if principals is not None:
                is_guarded = True
                for who in dict.fromkeys((principal, EVERYBODY)):
                    found += principals.get(who, ())
        return Grants(found, is_guarded)

    def _patterns(self, kind: ResourceType, name: str) -> Iterator[_Pattern]:
        yield kind, PatternType.LITERAL, name
        if name != WILDCARD:
            yield kind, PatternType.LITERAL, WILDCARD
        for length in self._prefix_lengths.get(kind, ()):
            if length <= len(name):
                yield kind, PatternType.PREFIXED, name[:length]

    def of_principal(self, kind: ResourceType, principal: str) -> list[AclBinding]:
        """Of all resources of a type, for a principal and for everybody."""
        return [
            binding
            for who in dict.fromkeys((principal, EVERYBODY))
            for binding in self._by_principal.get((kind, who), ())
        ]
