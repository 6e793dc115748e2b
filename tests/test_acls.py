from __future__ import annotations

import pytest

from aioproducer.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)

TOPIC, READ = ResourceType.TOPIC, AclOperation.READ
ORDERS = AclBinding(resource_type=TOPIC, name="orders", principal="User:a", operation=READ)
ALL_TOPICS = AclBinding(resource_type=TOPIC, name="*", principal="User:a", operation=READ)
PREFIX = AclBinding(
    resource_type=TOPIC,
    name="ord",
    pattern_type=PatternType.PREFIXED,
    principal="User:*",
    host="10.0.0.1",
    operation=AclOperation.ALL,
    permission=AclPermissionType.DENY,
)
EVERY = [ORDERS, ALL_TOPICS, PREFIX]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclBindingFilter(), EVERY),
        (AclBindingFilter(resource_type=TOPIC), EVERY),
        (AclBindingFilter(resource_type=ResourceType.GROUP), []),
        (AclBindingFilter(name="orders"), [ORDERS]),
        (AclBindingFilter(name="ord"), [PREFIX]),
        (AclBindingFilter(name="*"), [ALL_TOPICS]),
        (AclBindingFilter(name="ord", pattern_type=PatternType.LITERAL), []),
        (AclBindingFilter(pattern_type=PatternType.LITERAL), [ORDERS, ALL_TOPICS]),
        (AclBindingFilter(pattern_type=PatternType.PREFIXED), [PREFIX]),
        (AclBindingFilter(name="orders", pattern_type=PatternType.MATCH), EVERY),
        (AclBindingFilter(name="order", pattern_type=PatternType.MATCH), [ALL_TOPICS, PREFIX]),
        (AclBindingFilter(name="or", pattern_type=PatternType.MATCH), [ALL_TOPICS]),
        (AclBindingFilter(pattern_type=PatternType.MATCH), EVERY),
        (AclBindingFilter(principal="User:*"), [PREFIX]),
        (AclBindingFilter(host="*"), [ORDERS, ALL_TOPICS]),
        (AclBindingFilter(operation=AclOperation.ALL), [PREFIX]),
        (AclBindingFilter(permission=AclPermissionType.ALLOW), [ORDERS, ALL_TOPICS]),
        (AclBindingFilter(name=""), []),
    ],
)
def test_a_filter_matches_the_expected_bindings(wanted: AclBindingFilter, found: list[AclBinding]) -> None:
    assert [binding for binding in EVERY if wanted.matches(binding)] == found
    assert not wanted.is_unknown


@pytest.mark.parametrize("enum", [ResourceType, PatternType, AclOperation, AclPermissionType])
def test_an_enum_value_of_newer_brokers_is_unknown(enum: type[ResourceType]) -> None:
    assert enum(77) is enum.UNKNOWN
    assert enum(-1) is enum.UNKNOWN


def test_a_filter_of_what_is_unknown_says_so() -> None:
    assert AclBindingFilter(operation=AclOperation.UNKNOWN).is_unknown
    assert AclBindingFilter(resource_type=ResourceType.UNKNOWN).is_unknown
