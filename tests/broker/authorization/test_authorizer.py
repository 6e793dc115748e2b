from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.acls import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker.authorization.acl_store import AclStore
from aioproducer.broker.authorization.authorizer import Client, StandardAuthorizer, super_users_of
from aioproducer.errors import ConfigException

TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
DENY, ALLOW = AclPermissionType.DENY, AclPermissionType.ALLOW
PREFIXED = PatternType.PREFIXED
ALICE = Client("User:alice", "10.0.0.1")


def acl(
    name: str = "t",
    operation: AclOperation = READ,
    permission: AclPermissionType = ALLOW,
    *,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AclBinding:
    return AclBinding(
        resource_type=TOPIC,
        name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
    )


def authorizer(*acls: AclBinding, allow_if_no_acl: bool = False) -> StandardAuthorizer:
    store = AclStore()
    for one in acls:
        store.create(one)
    return StandardAuthorizer(store, ["User:root"], allow_if_no_acl=allow_if_no_acl)


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl()], True),
        ([acl("T")], False),
        ([acl("*")], True),
        ([acl("*", pattern=PREFIXED)], False),
        ([acl("t", pattern=PREFIXED)], True),
        ([acl("tt", pattern=PREFIXED)], False),
        ([acl(operation=AclOperation.ALL)], True),
        ([acl(operation=WRITE)], False),
        ([acl(principal="User:*")], True),
        ([acl(principal="User:bob")], False),
        ([acl(principal="Group:alice")], False),
        ([acl(host="10.0.0.1")], True),
        ([acl(host="10.0.0.2")], False),
        ([acl(), acl("*", READ, DENY)], False),
        ([acl(), acl("t", AclOperation.ALL, DENY, pattern=PREFIXED)], False),
        ([acl(), acl("t", READ, DENY, principal="User:*")], False),
        ([acl(), acl("t", READ, DENY, host="10.0.0.2")], True),
        ([acl(), acl("t", DESCRIBE, DENY)], True),
    ],
)
def test_reading_a_topic(acls: list[AclBinding], allowed: bool) -> None:
    assert authorizer(*acls).authorize(ALICE, READ, TOPIC, "t") is allowed


@pytest.mark.parametrize(
    ("operation", "implied"),
    [
        (READ, {DESCRIBE}),
        (WRITE, {DESCRIBE}),
        (AclOperation.DELETE, {DESCRIBE}),
        (AclOperation.ALTER, {DESCRIBE}),
        (AclOperation.ALTER_CONFIGS, {AclOperation.DESCRIBE_CONFIGS}),
        (AclOperation.CREATE, set()),
        (DESCRIBE, set()),
    ],
)
def test_an_operation_allows_and_denies_those_that_it_implies(
    operation: AclOperation, implied: set[AclOperation]
) -> None:
    single = [one for one in AclOperation if one > AclOperation.ALL]
    allowing, denying = (
        authorizer(acl(operation=operation)),
        authorizer(acl("*", AclOperation.ALL), acl("t", operation, DENY)),
    )
    assert {one for one in single if allowing.authorize(ALICE, one, TOPIC, "t")} == {operation, *implied}
    assert {one for one in single if not denying.authorize(ALICE, one, TOPIC, "t")} == {operation}


def test_super_users_are_denied_nothing() -> None:
    root = Client("User:root", "10.0.0.1")
    denied = authorizer(acl("*", AclOperation.ALL, DENY, principal="User:*"))
    assert denied.authorize(root, WRITE, TOPIC, "t")
    assert denied.authorize_by_resource_type(root, WRITE, TOPIC)
    assert not denied.authorize(ALICE, WRITE, TOPIC, "t")


def test_every_client_may_do_everything_to_resources_without_acls() -> None:
    open_to_all = authorizer(acl("t", principal="User:bob"), acl("p", pattern=PREFIXED), allow_if_no_acl=True)
    assert open_to_all.authorize(ALICE, WRITE, TOPIC, "other")
    assert open_to_all.authorize(ALICE, WRITE, ResourceType.GROUP, "t")
    assert not open_to_all.authorize(ALICE, READ, TOPIC, "t")
    assert not open_to_all.authorize(ALICE, WRITE, TOPIC, "paper")


BINDINGS = st.builds(
    acl,
    st.sampled_from(["a", "ab", "abc", "b", "*"]),
    st.sampled_from([READ, WRITE, AclOperation.ALL]),
    st.sampled_from([ALLOW, DENY]),
    pattern=st.sampled_from([PatternType.LITERAL, PREFIXED]),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*"]),
    host=st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
)


@given(st.lists(BINDINGS, max_size=8))
def test_some_topic_may_be_written_exactly_if_there_is_a_name_for_one(acls: list[AclBinding]) -> None:
    """But for a wildcard that is allowed, where Kafka does not look whether prefixes leave anything of it."""
    subject = authorizer(*acls)
    names = ["a", "ab", "abc", "abcd", "b", "bc", "c", "hardcode", "aa"]
    some = any(subject.authorize(ALICE, WRITE, TOPIC, name) for name in names)
    claimed = subject.authorize_by_resource_type(ALICE, WRITE, TOPIC)
    assert claimed or not some
    if not any(one.name == "*" for one in acls):
        assert claimed == some


@given(st.lists(BINDINGS, max_size=8), st.sampled_from(["a", "ab", "c"]))
def test_decisions_follow_the_rules(acls: list[AclBinding], name: str) -> None:
    subject = authorizer(*acls)
    of_name = AclBindingFilter(resource_type=TOPIC, name=name, pattern_type=PatternType.MATCH)
    mine = [
        one
        for one in acls
        if of_name.matches(one)
        and one.principal in ("User:alice", "User:*")
        and one.host in ("*", "10.0.0.1")
        and one.operation in (WRITE, AclOperation.ALL)
    ]
    allowed = bool(mine) and all(one.permission is ALLOW for one in mine)
    assert subject.authorize(ALICE, WRITE, TOPIC, name) is allowed


def test_super_users_in_a_config() -> None:
    assert super_users_of(" User:a ; User:CN=b,O=c;;") == {"User:a", "User:CN=b,O=c"}
    assert super_users_of("") == frozenset()
    with pytest.raises(ConfigException, match=r"super\.users.*'root'"):
        super_users_of("root")
