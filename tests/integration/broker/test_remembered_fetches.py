"""What a fetch session remembers of a client that may not read everything."""

from ottla.base.errors import ErrorCode
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.broker.inprocess import run

VERSION = 12
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ONLY_ALICE = AclCreation(
    resource_type=AclResource.TOPIC,
    resource_name="closed",
    resource_pattern_type=PatternType.LITERAL,
    principal="User:alice",
    host="*",
    operation=AclOperation.READ,
    permission_type=Permission.ALLOW,
)


def fetch(*topics, session_id=0, epoch=0):
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return FetchRequest(
        max_bytes=1000,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=name, partitions=[wanted]) for name in topics],
    )


def codes(answer):
    return {
        topic.topic: ErrorCode(topic.partitions[0].error_code).name for topic in answer.responses
    }


def test_a_session_remembers_nothing_that_its_client_may_not_read():
    """It would be remembered for minutes, in as many sessions as there are; and the error stays."""

    async def scenario(caller):
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in ("open", "closed")
        ]
        await caller.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 5)
        sessions = caller.broker.serving.fetch.sessions
        created = await caller.call(CreateAclsRequest(creations=[ONLY_ALICE]), 3)
        assert created.results[0].error_code == ErrorCode.NONE
        both = {"open": "NONE", "closed": "TOPIC_AUTHORIZATION_FAILED"}
        for _ in range(2):
            full = await caller.call(fetch("open", "closed"), VERSION)
            assert (codes(full), full.session_id) == (both, 0)
        number = (await caller.call(fetch("open"), VERSION)).session_id
        assert number > 0
        adding = await caller.call(fetch("closed", session_id=number, epoch=1), VERSION)
        assert adding.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert len(sessions) == 0

    run(scenario, AUTHORIZER)
