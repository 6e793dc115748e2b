from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaAdmin,
    PatternType,
    ResourceType,
)
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ClusterAuthorizationException, InvalidRequestException, SecurityDisabledException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.faults.fault_script import FaultScript
from tests.admin.clusters import QUICK

CONFIGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
READ = AclBinding(resource_type=ResourceType.TOPIC, name="orders", principal="User:alice", operation=AclOperation.READ)
DENIED = AclBinding(
    resource_type=ResourceType.GROUP,
    name="billing-",
    pattern_type=PatternType.PREFIXED,
    principal="User:*",
    host="10.0.0.1",
    operation=AclOperation.ALL,
    permission=AclPermissionType.DENY,
)
NO_PRINCIPAL = AclBinding(
    resource_type=ResourceType.TOPIC, name="orders", principal="alice", operation=AclOperation.READ
)


@pytest.fixture
def faults() -> FaultScript:
    return FaultScript(nodes=2)


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, configs=CONFIGS, faults=faults) as cluster:
        yield cluster
    faults.verify()


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin


async def test_created_acls_are_described_and_deleted(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    assert await admin.describe_acls() == []
    await admin.create_acl(READ)
    assert await admin.create_acls([READ, DENIED, DENIED]) == {READ: None, DENIED: None}
    assert await admin.describe_acls() == cluster.acls == [READ, DENIED]
    assert await admin.describe_acls(AclBindingFilter(name="orders")) == [READ]
    assert await admin.describe_acls(AclBindingFilter(name="billing-eu", pattern_type=PatternType.MATCH)) == [DENIED]
    assert await admin.delete_acls(AclBindingFilter(principal="User:*")) == [DENIED]
    assert cluster.acls == [READ]
    assert await admin.delete_acls(AclBindingFilter(principal="User:*")) == []


async def test_an_impossible_acl_hides_no_result_of_another(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    outcomes = await admin.create_acls([NO_PRINCIPAL, READ])
    assert outcomes[READ] is None
    assert isinstance(outcomes[NO_PRINCIPAL], InvalidRequestException)
    assert "ALLOW 'alice' from * to READ on LITERAL TOPIC 'orders'" in str(outcomes[NO_PRINCIPAL])
    with pytest.raises(InvalidRequestException, match="alice is not TYPE:NAME"):
        await admin.create_acl(NO_PRINCIPAL)
    assert cluster.acls == [READ]


async def test_a_filter_of_what_is_not_known(admin: KafkaAdmin) -> None:
    with pytest.raises(InvalidRequestException, match="not known here"):
        await admin.delete_acls(AclBindingFilter(operation=AclOperation.UNKNOWN))


async def test_another_attempt_is_made(admin: KafkaAdmin, cluster: EmbeddedCluster, faults: FaultScript) -> None:
    faults.on(ApiKey.CREATE_ACLS).drop_response()
    await admin.create_acl(READ)
    assert cluster.acls == [READ]
    faults.on(ApiKey.DESCRIBE_ACLS).answer(ErrorCode.NOT_CONTROLLER)
    assert await admin.describe_acls() == [READ]
    faults.on(ApiKey.DELETE_ACLS).drop_response()
    assert await admin.delete_acls(AclBindingFilter()) == []
    assert cluster.acls == []


async def test_without_an_authorizer() -> None:
    async with (
        EmbeddedCluster() as cluster,
        KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        for call in (admin.describe_acls(), admin.create_acl(READ), admin.delete_acls(AclBindingFilter())):
            with pytest.raises(SecurityDisabledException, match="no authorizer"):
                await call


async def test_a_principal_without_permission_is_refused() -> None:
    configs = {**CONFIGS, "super.users": ""}
    async with (
        EmbeddedCluster(configs=configs) as cluster,
        KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        cluster.create_acls(READ)
        for call in (admin.describe_acls(), admin.create_acl(DENIED), admin.delete_acls(AclBindingFilter())):
            with pytest.raises(ClusterAuthorizationException, match="User:ANONYMOUS may not"):
                await call
        assert cluster.acls == [READ]
