"""CreateAcls, DescribeAcls and DeleteAcls, and the checks before every request."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.broker.access.acls import Acls
from ottla.broker.handlers.acls import CreateAcls, DeleteAcls, DescribeAcls
from ottla.broker.process.apis import served
from ottla.broker.requests.needs import brokers_only
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata import paths
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.security.principal import Principal
from ottla.testing.clock import ManualClock
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

from .replica_world import call, play

ALICE = Principal("User", "alice")
TOPIC, READ = AclResource.TOPIC, AclOperation.READ


def rule(name="t", operation=READ, permission=Permission.ALLOW, kind=PatternType.LITERAL):
    return Acl(ResourcePattern(TOPIC, name, kind), "User:alice", "*", operation, permission)


def creation(acl):
    return AclCreation(
        resource_type=acl.pattern.resource_type,
        resource_name=acl.pattern.name,
        resource_pattern_type=acl.pattern.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


async def stored(store=None):
    """The ACLs of a broker; two that share a store are two brokers."""
    store = store or MemoryStore()
    for path in paths.FOUNDATIONS:
        await store.ensure(path)
    acls = Acls(store, ManualClock(), Authorizer())
    await acls.load()
    return acls, store


def test_every_api_that_clients_may_call_has_its_check():
    """APIs between brokers are refused to all clients; one of them makes a broker known."""
    between = {api.name for api in served().values() if api.between_brokers}
    assert between == {
        "BrokerHandshake",
        "ControlledShutdown",
        "DeleteShareGroupState",
        "InitializeShareGroupState",
        "LeaderAndIsr",
        "LogEnds",
        "ReadShareGroupState",
        "ReaderLag",
        "ReadShareGroupStateSummary",
        "StopReplica",
        "UpdateMetadata",
        "WriteShareGroupState",
    }
    refused = {api.name for api in served().values() if api.needs is brokers_only}
    assert refused == between - {"BrokerHandshake"}


def test_acls_are_added_described_and_deleted(caplog):
    """Each independently: a malformed one does not hinder the others."""

    async def scenario(_world):
        acls, _ = await stored()
        request = CreateAclsRequest(
            creations=[
                creation(rule()),
                creation(rule("p", kind=PatternType.PREFIXED)),
                creation(rule()._replace(principal="alice")),
                AclCreation(resource_type=99, resource_name="t", principal="User:a", host="*"),
            ]
        )
        results = (await call(CreateAcls(acls), request)).results
        assert [each.error_code for each in results] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
        ]
        every = {"pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        described = await call(
            DescribeAcls(acls), DescribeAclsRequest(resource_type_filter=1, **every)
        )
        assert [(each.resource_name, len(each.acls)) for each in described.resources] == [
            ("t", 1),
            ("p", 1),
        ]
        matching = DeleteAclsFilter(
            resource_type_filter=2, resource_name_filter="pp", **{**every, "pattern_type_filter": 2}
        )
        unknown = DeleteAclsFilter(resource_type_filter=0, **every)
        deleted = await call(DeleteAcls(acls), DeleteAclsRequest(filters=[matching, unknown]))
        assert [each.error_code for each in deleted.filter_results] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
        ]
        (gone,) = deleted.filter_results[0].matching_acls
        assert (gone.resource_name, gone.pattern_type) == ("p", PatternType.PREFIXED)
        assert acls.matching(AclFilter()) == [rule()]

    play(scenario)
    # Once for the address: what was seen, and how it is to be written.
    (line,) = [each for each in caplog.messages if "refused an ACL" in each]
    assert "refused an ACL of User:ANONYMOUS at 10.0.0.9:4711" in line
    assert "Could not parse principal from `alice`" in line
    assert "write it as User:alice" in line


def test_a_change_holds_on_a_broker_that_hears_of_it():
    """The notification names the pattern; the last ACL takes its node with it."""

    async def scenario():
        acls, store = await stored()
        other, _ = await stored(store)
        forwarded = []

        async def others(entity):
            forwarded.append(entity)

        hear = other.before(others)
        await acls.create([rule(), rule(operation=AclOperation.WRITE)])
        await hear("acls/literal/Topic/t")
        assert other.authorizer.allows(ALICE, "h", AclOperation.WRITE, TOPIC, "t")
        await acls.delete([rule(operation=AclOperation.WRITE)])
        await hear("acls/literal/Topic/t")
        assert not other.authorizer.allows(ALICE, "h", AclOperation.WRITE, TOPIC, "t")
        assert other.authorizer.allows(ALICE, "h", READ, TOPIC, "t")
        await acls.delete([rule()])
        assert await store.get("/config/acls/literal/Topic/t") is None
        await hear("acls/literal/Topic/t")
        await hear("topics/t")
        assert other.matching(AclFilter()) == []
        assert forwarded == ["topics/t"]
        assert len(await store.children(paths.CONFIG_CHANGES)) == 3

    asyncio.run(scenario())


def test_brokers_that_write_at_the_same_time_lose_no_acl():
    """Each change is a compare-and-set of the pattern's node."""

    async def scenario():
        acls, store = await stored()
        other, _ = await stored(store)
        await asyncio.gather(
            *(
                each.create([rule(operation=operation)])
                for each, operation in (
                    (acls, READ),
                    (other, AclOperation.WRITE),
                    (acls, AclOperation.DELETE),
                    (other, AclOperation.ALTER),
                )
            )
        )
        await acls.load()
        assert {acl.operation for acl in acls.matching(AclFilter())} == {
            READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }

    asyncio.run(scenario())


def test_an_unreadable_node_denies_what_it_protects(caplog):
    """The log names the node and what to do; deleting the ACL and adding others mends it."""

    async def scenario():
        acls, store = await stored()
        await acls.create([rule("*")])
        await store.ensure("/config/acls/literal/Topic/t")
        path = "/config/acls/literal/Topic/t"
        node = await store.get(path)
        from ottla.coordination.interface.store import Set

        await store.multi([Set(path, b"{", node.version)])
        await acls.load()
        allows = acls.authorizer.allows
        assert not allows(ALICE, "h", READ, TOPIC, "t")
        assert allows(ALICE, "h", READ, TOPIC, "other")
        assert "is denied to every user until they are" in caplog.text
        await acls.delete(acls.matching(AclFilter(name="t")))
        assert allows(ALICE, "h", READ, TOPIC, "t")

    asyncio.run(scenario())


def any_acl(operation=AclOperation.ANY):
    return DeleteAclsFilter(
        resource_type_filter=AclResource.ANY,
        pattern_type_filter=PatternType.ANY,
        operation=operation,
        permission_type=Permission.ANY,
    )


def test_one_request_changes_ten_thousand_acls_at_most():
    """As in Kafka; a filter for each of many ACLs would be an answer of a hundred million."""

    async def scenario(_world):
        acls, _ = await stored()
        await acls.create([rule(name=f"t{number}") for number in range(101)])
        deleting = DeleteAclsRequest(filters=[any_acl()] * 100)
        answer = await call(DeleteAcls(acls), deleting)
        assert {each.error_code for each in answer.filter_results} == {ErrorCode.POLICY_VIOLATION}
        assert len(acls.matching(AclFilter())) == 101
        many = DeleteAclsRequest(filters=[any_acl(AclOperation.WRITE)] * 10_001)
        answer = await call(DeleteAcls(acls), many)
        assert {each.error_code for each in answer.filter_results} == {ErrorCode.POLICY_VIOLATION}
        adding = CreateAclsRequest(creations=[creation(rule())] * 10_001)
        answer = await call(CreateAcls(acls), adding)
        assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
        assert rule() not in acls.matching(AclFilter())

    play(scenario)


def test_other_requests_are_served_between_the_filters_of_a_deletion():
    """A thousand filters over a thousand ACLs are a second of the loop."""

    async def scenario(_world):
        acls, _ = await stored()
        await acls.create([rule(name=f"t{number}") for number in range(1000)])
        served = []

        async def others():
            while True:
                served.append(True)
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        nothing = AclFilter(operation=AclOperation.WRITE)
        found = await acls.matching_all([nothing] * 1000)
        beside.cancel()
        assert found == [[]] * 1000
        assert len(served) >= 50

    play(scenario)
