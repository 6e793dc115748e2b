from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.acls import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker.authorization import acl_store
from aioproducer.broker.authorization.acl_store import MAX_TEXT, AclStore
from aioproducer.errors import InvalidRequestException, KafkaStorageException, PolicyViolationException

TOPIC = ResourceType.TOPIC
NAMES = ["a", "ab", "abc", "b", "*"]

BINDINGS = st.builds(
    AclBinding,
    resource_type=st.sampled_from([TOPIC, ResourceType.GROUP]),
    name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:a", "User:b", "User:*"]),
    host=st.sampled_from(["*", "10.0.0.1"]),
    operation=st.sampled_from([AclOperation.READ, AclOperation.WRITE]),
    permission=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


def binding(name: str = "a", **more: object) -> AclBinding:
    given: dict[str, object] = {"resource_type": TOPIC, "principal": "User:a", "operation": AclOperation.READ, **more}
    return AclBinding(name=name, **given)  # type: ignore[arg-type]


@given(st.lists(BINDINGS), st.lists(BINDINGS), st.sampled_from(NAMES[:-1]), st.sampled_from(["User:a", "User:c"]))
def test_acls_of_a_resource_are_found_as_by_looking_at_every_acl(
    created: list[AclBinding], deleted: list[AclBinding], name: str, principal: str
) -> None:
    store = AclStore()
    for one in created:
        store.create(one)
    for one in deleted:
        wanted = AclBindingFilter(
            resource_type=one.resource_type, name=one.name, pattern_type=one.pattern_type, principal=one.principal
        )
        expected = [there for there in store if wanted.matches(there)]
        assert store.delete(wanted) == expected
    left = list(store)
    assert len(store) == len(left) == len(set(left))
    of_topic = AclBindingFilter(resource_type=TOPIC, name=name, pattern_type=PatternType.MATCH)
    concerned = [one for one in left if of_topic.matches(one)]
    found, is_guarded = store.of_resource(TOPIC, name, principal)
    assert is_guarded == bool(concerned)
    whose = (principal, "User:*")
    assert sorted(found, key=repr) == sorted((one for one in concerned if one.principal in whose), key=repr)
    assert sorted(store.of_principal(TOPIC, principal), key=repr) == sorted(
        (one for one in left if one.resource_type is TOPIC and one.principal in whose), key=repr
    )


FILTERS = st.builds(
    AclBindingFilter,
    resource_type=st.sampled_from([ResourceType.ANY, TOPIC, ResourceType.GROUP]),
    name=st.sampled_from([None, *NAMES, "abcd"]),
    pattern_type=st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from([None, "User:a", "User:*", "User:c"]),
    host=st.sampled_from([None, "*"]),
    operation=st.sampled_from([AclOperation.ANY, AclOperation.READ]),
    permission=st.sampled_from([AclPermissionType.ANY, AclPermissionType.DENY]),
)


@given(st.lists(BINDINGS), st.lists(FILTERS, max_size=3))
def test_filters_delete_what_they_match_as_by_looking_at_every_acl(
    created: list[AclBinding], filters: list[AclBindingFilter]
) -> None:
    store = AclStore()
    for one in created:
        store.create(one)
    for wanted in filters:
        expected = [one for one in store if wanted.matches(one)]
        left = [one for one in store if not wanted.matches(one)]
        assert sorted(store.delete(wanted), key=repr) == sorted(expected, key=repr)
        assert list(store) == left


def test_nothing_is_left_of_a_deleted_topic() -> None:
    store = AclStore()
    for pattern in (PatternType.LITERAL, PatternType.PREFIXED):
        store.create(binding(pattern_type=pattern))
    store.delete(AclBindingFilter())
    assert not any((store._all, store._by_pattern, store._by_principal, store._prefix_lengths[TOPIC]))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (binding(resource_type=ResourceType.ANY), "ANY is no resource type"),
        (binding(resource_type=ResourceType.UNKNOWN), "UNKNOWN is no resource type"),
        (binding(pattern_type=PatternType.MATCH), "MATCH is no pattern type"),
        (binding(operation=AclOperation.ANY), "ANY is no operation"),
        (binding(permission=AclPermissionType.UNKNOWN), "UNKNOWN is no permission"),
        (binding(""), "is empty"),
        (binding(resource_type=ResourceType.CLUSTER), "'kafka-cluster'"),
        (binding(principal="alice"), "alice is not TYPE:NAME"),
        (binding("x" * (MAX_TEXT + 1)), "1000 characters at most"),
        (binding(principal="User:" + "x" * MAX_TEXT), "1000 characters at most"),
        (binding(host="x" * (MAX_TEXT + 1)), "1000 characters at most"),
    ],
)
def test_a_meaningless_acl_is_refused(wrong: AclBinding, why: str) -> None:
    store = AclStore()
    with pytest.raises(InvalidRequestException, match=why):
        store.create(wrong)
    assert len(store) == 0


def test_there_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_store, "MAX_ACLS", 2)
    store = AclStore()
    store.create(binding("a"))
    store.create(binding("b"))
    assert not store.create(binding("b"))
    with pytest.raises(PolicyViolationException, match="2 ACLs"):
        store.create(binding("c"))
    store.delete(AclBindingFilter(name="a"))
    assert store.create(binding("c"))


def test_an_acl_that_cannot_be_stored_is_not_created() -> None:
    def fail(binding: AclBinding, is_new: bool) -> None:
        raise KafkaStorageException("the disk")

    store = AclStore(fail)
    with pytest.raises(KafkaStorageException):
        store.create(binding())
    assert len(store) == 0
    store.restore(binding())
    with pytest.raises(KafkaStorageException):
        store.delete(AclBindingFilter())
    assert len(store) == 1
