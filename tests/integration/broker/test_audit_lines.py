"""Which lines requests leave in the audit log of a broker in this process."""

import asyncio
import base64
import io
import json
import os
import socket
import sys
from collections import Counter
from typing import Any

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.audit.audit import is_audited
from ottla.broker.process.apis import served
from ottla.broker.requests.auditing import AdminChange, Need
from ottla.broker.requests.request import RequestContext
from ottla.network.connection import Connection
from ottla.record.builder import build_batch
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.audit.chain import hash_of, parse_file_name
from ottla.security.audit.verification import ChainCheck
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.security.principal import ANONYMOUS, Principal
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.api import ApiKey, key_name
from ottla.wire.frames import RequestHeader
from ottla.wire.messages import configs
from ottla.wire.messages.acls import CreateAclsRequest
from ottla.wire.messages.client_use import ClientDelaysRequest, ClientUsageRequest
from ottla.wire.messages.decisions import DescribeDecisionsRequest, DescribeRebalancesRequest
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from ottla.wire.messages.log_cleaning import DescribeCleanerRequest, RetentionStandingRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_ledger import LogEndsRequest, OffsetLedgerRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.wire.messages.transactions import InitProducerIdRequest
from ottla.wire.messages.undo import DescribeUndoRequest
from tests.integration.broker.audited_changes import CHANGED, CLUSTER, SALT, SALTED
from tests.integration.broker.inprocess import run

# What clients may send and what is no administrative change.
READING = {
    ApiKey.API_VERSIONS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_ACLS,
    DescribeCleanerRequest.__api_key__,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS,
    ClientDelaysRequest.__api_key__,
    ClientUsageRequest.__api_key__,
    DescribeDecisionsRequest.__api_key__,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_PRODUCERS,
    DescribeRebalancesRequest.__api_key__,
    DescribeUndoRequest.__api_key__,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_OFFSETS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_TRANSACTIONS,
    # A topic that it creates has a line from its handler.
    ApiKey.METADATA,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    OffsetLedgerRequest.__api_key__,
    RetentionStandingRequest.__api_key__,
    ApiKey.SHARE_GROUP_DESCRIBE,
}
# The work of producers and consumers. An administrator who ends a producer's transaction by
# InitProducerId, or removes a member by LeaveGroup, sends what producers and members send.
WORKING = {
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.END_TXN,
    ApiKey.HEARTBEAT,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.PRODUCE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SYNC_GROUP,
    ApiKey.TXN_OFFSET_COMMIT,
}

CHANGING = {api.key for api in served().values() if api.changes is not None}


def test_every_api_that_clients_may_call_is_audited_or_changes_nothing() -> None:
    """The handler of a new API that changes something declares its `changes`."""
    clients = {api.key for api in served().values() if not api.between_brokers}
    assert clients == CHANGING | READING | WORKING
    assert not CHANGING & (READING | WORKING)


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def lines_of(filesystem: MemoryFileSystem) -> list[dict[str, Any]]:
    """All lines, whose chain must be intact."""
    names = [name for name in filesystem.listdir("/data") if name.endswith(".log")]
    check, lines = ChainCheck(1), list[dict[str, Any]]()
    for file in sorted(filter(None, map(parse_file_name, names))):
        data = filesystem.read_bytes(f"/data/{file.name}")
        check.read(file, io.BytesIO(data))
        lines += map(json.loads, data.splitlines())
    assert check.finish().intact
    return lines


def played(scenario: Any, settings: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The lines of a broker that served `scenario(caller)`, but for the first and the last."""
    filesystem = MemoryFileSystem()
    run(scenario, {**AUTHORIZER, **(settings or {})}, filesystem=filesystem)
    first, *lines, last = lines_of(filesystem)
    assert (first["event"], last["event"]) == ("start", "stop")
    return lines


async def wait_for_coordinator(caller: Any) -> None:
    """Until the coordinator of group g serves; nothing of it is audited."""
    await caller.call(FindCoordinatorRequest(key="g"), 0)
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    for _ in range(100_000):
        if not (await caller.call(fetch, 8)).groups[0].error_code:
            return


def short(line: dict[str, Any]) -> tuple[str, str, dict[str, Any], str]:
    """What differs between changes."""
    return line["api"], line["resource"], line["detail"], line.get("error", line["outcome"])


def test_each_change_leaves_its_lines_and_no_secret() -> None:
    """For every API that changes something; what is only tried or described leaves none."""
    expected = [
        (key_name(body.__api_key__), *line) for body, _version, lines in CHANGED for line in lines
    ]

    async def scenario(caller: Any) -> None:
        await wait_for_coordinator(caller)
        for body, version, _lines in CHANGED:
            await caller.call(body, version)

    lines = played(scenario)
    assert [short(line) for line in lines] == expected
    assert {api for api, *_ in expected} == {key_name(key) for key in CHANGING} | {"METADATA"}
    text = json.dumps(lines)
    for secret in (SALT, SALTED, b"not to be seen"):
        assert secret.decode() not in text
        assert base64.b64encode(secret).decode() not in text
    assert {line["rule"] for line in lines} == {
        "allow.everyone.if.no.acl.found",
        "owner and renewers of the token may",
    }
    assert lines[0] == {
        "api": "CREATE_TOPICS",
        "broker": 1,
        "client_id": "tester",
        "detail": {
            "partition_count": 2,
            "replication_factor": 1,
            "settings": {"retention.ms": "7"},
        },
        "event": "changed",
        "host": "127.0.0.1",
        "line": 2,
        "listener": "PLAINTEXT",
        "operation": "CREATE",
        "outcome": "done",
        "previous": lines[0]["previous"],
        "principal": "User:ANONYMOUS",
        "resource": "Topic:t",
        "rule": "allow.everyone.if.no.acl.found",
        "time": lines[0]["time"],
    }


RULE_OF_WRITE = "DENY User:* from * WRITE on Topic:LITERAL:t"


def denied(line: dict[str, Any]) -> tuple[Any, ...]:
    """What differs between denials."""
    return line["api"], line["operation"], line["resource"], line["rule"]


def _fetch(topic: str) -> FetchRequest:
    return FetchRequest(
        topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition=0)])], max_wait_ms=0
    )


def _produce(topic: str) -> ProduceRequest:
    return ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=memoryview(b""))]
            )
        ],
    )


DENIED: list[tuple[Any, int, list[tuple[str, str, str]]]] = [
    (_produce("t"), 7, [("WRITE", "Topic:t", RULE_OF_WRITE)]),
    (_fetch("t"), 11, [("READ", "Topic:t", "no rule")]),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name="u")], allow_auto_topic_creation=False),
        9,
        [("DESCRIBE", "Topic:u", "no rule")],
    ),
    # Lists leave out what is hidden; that is no denial.
    (MetadataRequest(topics=None), 9, []),
    (ListGroupsRequest(), 4, []),
    (CreateAclsRequest(), 3, [("ALTER", CLUSTER, "no rule")]),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t"), DeleteTopicState(name="u")]),
        6,
        [("DELETE", "Topic:t", "no rule"), ("DELETE", "Topic:u", "no rule")],
    ),
    (DeleteGroupsRequest(groups_names=["g"]), 2, [("DELETE", "Group:g", "no rule")]),
    (
        InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1),
        4,
        [("WRITE", "TransactionalId:x", "no rule")],
    ),
    (LogEndsRequest(), 0, [("CLUSTER_ACTION", CLUSTER, "only for brokers")]),
]


def test_each_denial_leaves_a_line_with_the_rule_that_decided() -> None:
    """What a request needs and the client may not do; what it never asked for is none."""
    expected = [
        (key_name(body.__api_key__), *line) for body, _version, lines in DENIED for line in lines
    ]

    async def scenario(caller: Any) -> None:
        pattern = ResourcePattern(AclResource.TOPIC, "t")
        acl = Acl(pattern, "User:*", "*", AclOperation.WRITE, Permission.DENY)
        await caller.broker.parts.access.acls.create([acl])
        for body, version, _lines in DENIED:
            await caller.call(body, version)

    lines = played(scenario, {"allow.everyone.if.no.acl.found": "false"})
    assert [denied(line) for line in lines] == expected
    assert {(line["event"], line["outcome"]) for line in lines} == {("denied", "denied")}
    assert {(line["principal"], line["host"]) for line in lines} == {
        ("User:ANONYMOUS", "127.0.0.1")
    }


def test_a_flood_of_denials_is_one_line_and_a_count() -> None:
    """The broker says how many more there were."""

    async def scenario(caller: Any) -> None:
        for _ in range(101):
            await caller.call(_produce("t"), 7)

    first, more = played(scenario, {"allow.everyone.if.no.acl.found": "false"})
    assert first["resource"] == "Topic:t"
    assert (more["resource"], more["more"]) == ("Topic:t", 100)


@pytest.mark.parametrize("api", [ApiKey.DELETE_TOPICS, ApiKey.FETCH])
def test_the_denials_of_one_request_are_few_lines_and_a_count(api: ApiKey) -> None:
    """Fifty have the names of their topics, and none of the others is lost."""
    names = [f"t{n}" for n in range(200)]
    fetched = [FetchTopic(topic=name, partitions=[FetchPartition(partition=0)]) for name in names]
    body, version = {
        ApiKey.DELETE_TOPICS: (DeleteTopicsRequest(topic_names=names), 5),
        ApiKey.FETCH: (FetchRequest(topics=fetched, max_wait_ms=0), 11),
    }[api]

    async def scenario(caller: Any) -> None:
        await caller.call(body, version)

    *named, counted = played(scenario, {"allow.everyone.if.no.acl.found": "false"})
    assert [line["resource"] for line in named] == [f"Topic:t{n}" for n in range(50)]
    assert "resource" not in counted
    assert (counted["event"], counted["api"], counted["more"]) == ("denied", api.name, 150)


def test_a_produce_that_is_allowed_costs_no_call() -> None:
    """Once the connection has learned it, nothing of the audit log is called."""
    called: list[str] = []

    def profile(frame: Any, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and ("broker/audit/" in file or "security/audit/" in file):
            called.append(frame.f_code.co_qualname)

    async def scenario(caller: Any) -> None:
        await caller.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        batch = memoryview(bytes(build_batch([0], None, [b"one"])))
        data = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name="t", partition_data=[data])
        for _ in range(3):
            answer = await caller.call(ProduceRequest(acks=1, topic_data=[topic]), 7)
            assert answer.responses[0].partition_responses[0].error_code == 0
        sys.setprofile(profile)
        for _ in range(20):
            await caller.call(ProduceRequest(acks=1, topic_data=[topic]), 7)
        sys.setprofile(None)

    (created,) = played(scenario)
    assert created["detail"] == {"automatically": True}
    assert called == []


def test_a_failed_login_leaves_a_line_with_its_cause() -> None:
    """Who it claims to be, and no token of it."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "connection.failed.authentication.delay.ms": "1",
    }

    async def scenario(caller: Any) -> None:
        await caller.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        token = SaslAuthenticateRequest(auth_bytes=b"n,,n=mallory,r=the-nonce-of-mallory")
        first = (await caller.call(token, 2)).auth_bytes.decode()
        nonce = first.split(",")[0]
        proof = SaslAuthenticateRequest(auth_bytes=f"c=biws,{nonce},p={'A' * 43}=".encode())
        assert (await caller.call(proof, 2)).error_code == 58

    (line,) = played(scenario, settings)
    assert (line["event"], line["outcome"]) == ("login_failed", "denied")
    assert (line["listener"], line["host"]) == ("SASL_PLAINTEXT", "127.0.0.1")
    assert line["cause"].startswith("SCRAM-SHA-256: there is no user 'mallory'")
    assert "nonce-of-mallory" not in json.dumps(line)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"audit.log.enable": "true"}, True),
        ({"authorizer.class.name": AUTHORIZER["authorizer.class.name"]}, True),
        ({**AUTHORIZER, "audit.log.enable": "false"}, False),
        ({"listeners": "SSL://:1"}, False),
        ({"listeners": "PLAINTEXT://:1,SASL_SSL://:2"}, True),
    ],
)
def test_the_audit_log_is_on_where_security_is(settings: dict[str, str], expected: bool) -> None:
    """Unless audit.log.enable says otherwise."""
    assert is_audited(BrokerSettings(settings)) is expected


def test_what_becomes_of_a_token_is_told_without_its_secret() -> None:
    """The line of its making has the fingerprint by which later lines name it."""
    alice = Principal("User", "alice")
    secrets = []

    async def scenario(caller: Any) -> None:
        (listener,) = caller.broker.serving.listeners.open
        (connection,) = listener.connections
        connection.principal = alice
        made = await caller.call(CreateDelegationTokenRequest(max_lifetime_ms=7), 3)
        assert made.error_code == 0
        secrets.extend([made.hmac.hex(), base64.b64encode(made.hmac).decode()])
        await caller.call(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=5), 2)
        await caller.call(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2)

    made, renewed, ended = played(scenario, {"delegation.token.secret.key": "the key"})
    assert (made["resource"], made["rule"]) == (
        "User:User:alice",
        "a user's own tokens need no ACL",
    )
    now_ms = made["detail"]["ends"] - 7
    name = f"DelegationToken:{made['detail']['fingerprint']}"
    assert (renewed["resource"], renewed["detail"]) == (name, {"renewed_until": now_ms + 5})
    assert (ended["resource"], ended["detail"]) == (name, {"ends": now_ms, "removed": True})
    text = json.dumps([made, renewed, ended])
    assert [secret for secret in [*secrets, "the key"] if secret in text] == []


def as_alice(caller: Any, host: str = "127.0.0.1") -> Connection:
    """The caller's connection, which is hers from now on."""
    (listener,) = caller.broker.serving.listeners.open
    connection: Connection
    (connection,) = listener.connections
    connection.principal, connection.peer_host = Principal("User", "alice"), host
    return connection


def test_each_token_that_a_user_makes_renews_and_ends_is_a_line() -> None:
    """No change that was made is only counted."""

    async def scenario(caller: Any) -> None:
        as_alice(caller)
        for _ in range(60):
            made = await caller.call(CreateDelegationTokenRequest(max_lifetime_ms=7_000_000), 3)
            renew = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=5_000_000)
            assert (await caller.call(renew, 2)).error_code == 0
            removed = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
            assert (await caller.call(removed, 2)).error_code == 0

    lines = played(scenario, {"delegation.token.secret.key": "the key"})
    assert Counter((line["api"], line["outcome"]) for line in lines) == {
        ("CREATE_DELEGATION_TOKEN", "done"): 60,
        ("RENEW_DELEGATION_TOKEN", "done"): 60,
        ("EXPIRE_DELEGATION_TOKEN", "done"): 60,
    }


def test_a_flood_of_strangers_and_users_hides_no_act_of_another() -> None:
    """100,000 events, and 20 acts of alice among them, 10 of them successful: 20 of 20 stand."""

    async def scenario(caller: Any) -> None:
        connection = as_alice(caller)
        audit = caller.broker.parts.audit
        header = RequestHeader(ApiKey.PRODUCE, 7, 1, "flood")
        for number in range(100_000):
            connection.peer_host = f"10.0.{number % 7}.{number % 250}"
            if number % 2:
                connection.principal = ANONYMOUS
                audit.login_failed(connection, "SASL", f"there is no user {number}", "")
            else:
                connection.principal = Principal("User", f"user{number % 9}")
                request = RequestContext(header, connection, "SASL", 0, 100)
                need = Need(AclOperation.WRITE, AclResource.TOPIC, f"t{number}")
                audit.denied(request, need, "no rule")
            if number % 5_000 == 0:
                as_alice(caller, "10.9.9.9")
                act = number // 5_000
                name = f"made-{act}" if act % 2 else f"refused {act}"
                topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                await caller.call(CreateTopicsRequest(topics=[topic]), 7)

    lines = played(scenario)
    acts = [line for line in lines if line.get("principal") == "User:alice"]
    assert {line["host"] for line in acts} == {"10.9.9.9"}
    assert Counter((line["outcome"], line.get("more")) for line in acts) == {
        ("done", None): 10,
        ("failed", None): 10,
    }
    assert len({line["resource"] for line in acts}) == 20
    counted = [line for line in lines if line not in acts]
    assert sum(line.get("more", 1) for line in counted) == 100_000
    assert all(line["principal"] and line["outcome"] for line in counted)
    # A principal with too many kinds is counted without its addresses.
    assert all("host" in line or line["more"] > 1 for line in counted)


def test_no_setting_of_a_request_is_left_out() -> None:
    """What one line has no room for, others have, also where names and values are long."""
    names = [f"retention.ms{'x' * 200}{number}" for number in range(300)]
    config = configs.AlterableConfig
    resource = configs.AlterConfigsResource(
        resource_type=2,
        resource_name="t",
        configs=[config(name=name, value="\U0001f600" * 299) for name in names],
    )
    request = configs.IncrementalAlterConfigsRequest(resources=[resource])

    async def scenario(caller: Any) -> None:
        await caller.call(request, 1)

    lines = played(scenario)
    shown = [each["name"] for line in lines for each in line["detail"].get("settings", ())]
    assert shown[:50] == names[:50]
    assert sum("too_long_bytes" in line["detail"] for line in lines) == 0


def test_records_that_were_deleted_are_not_among_those_that_were_not() -> None:
    """What was done and what failed stand in lines of their own, partition by partition."""

    async def scenario(caller: Any) -> None:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        await caller.call(CreateTopicsRequest(topics=[topic]), 7)
        wanted = [(0, 0), (1, 77), (0, 99), (5, 0)]
        parts = [DeleteRecordsPartition(partition_index=p, offset=o) for p, o in wanted]
        asked = DeleteRecordsTopic(name="t", partitions=parts)
        await caller.call(DeleteRecordsRequest(topics=[asked], timeout_ms=9_000), 2)

    _made, *lines = played(scenario)
    found = [(line.get("error", "done"), line["detail"]["before_offsets"]) for line in lines]
    assert ("done", {"0": 0}) in found
    assert sum(len(offsets) for _, offsets in found) == 4
    assert {code for code, _ in found} == {
        "done",
        "OFFSET_OUT_OF_RANGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_changes_of_a_client_with_too_many_lines_wait(caplog: pytest.LogCaptureFixture) -> None:
    """A request is served when time has forgiven its client's lines; none of them is left out."""
    needs = (Need(AclOperation.CREATE, AclResource.TOPIC, "u"),)

    async def scenario(caller: Any) -> None:
        connection = as_alice(caller)
        audit = caller.broker.parts.audit
        header = RequestHeader(ApiKey.CREATE_TOPICS, 7, 1, "x")
        request = RequestContext(header, connection, "PLAINTEXT", 0, 100)
        for _ in range(70):
            audit.changed(request, AdminChange(needs, {"a": "x" * 60_000}))
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        call = asyncio.create_task(caller.call(CreateTopicsRequest(topics=[topic]), 7))
        for _ in range(100_000):
            if "changes of User:alice from 127.0.0.1 wait" in caplog.text:
                break
            await asyncio.sleep(0.001)
        # Commits are counted instead: consumers wait for them.
        assert {key for key in CHANGING if served()[key].changes_often} == {ApiKey.OFFSET_COMMIT}
        assert len(lines_of(filesystem)) == 71
        caller.broker.runtime.clock.advance(1_000)
        assert (await call).topics[0].error_code == 0

    filesystem = MemoryFileSystem()
    run(scenario, AUTHORIZER, filesystem=filesystem)
    *_, made, _stop = lines_of(filesystem)
    assert (made["resource"], made["outcome"]) == ("Topic:t", "done")


def test_each_line_is_sent_elsewhere_with_the_head_of_the_chain() -> None:
    """The head is the hash of the line before it, so that a copy proves the files."""
    reader, writer = os.pipe()

    async def scenario(caller: Any) -> None:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await caller.call(CreateTopicsRequest(topics=[topic]), 7)

    filesystem = MemoryFileSystem()
    run(scenario, {**AUTHORIZER, "audit.log.sink": f"fd:{writer}"}, filesystem=filesystem)
    os.close(writer)
    with os.fdopen(reader, "rb") as sent:
        copied = sent.read().splitlines()
    heads = [json.loads(line) for line in copied if b'"event":"head"' in line]
    lines = [line for line in copied if b'"event":"head"' not in line]
    assert list(map(json.loads, lines)) == lines_of(filesystem)
    assert heads[-1] == {
        "broker": 1,
        "event": "head",
        "line": len(lines),
        "hash": hash_of(lines[-1]),
    }


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_each_line_is_a_datagram_for_syslog(family: socket.AddressFamily, host: str) -> None:
    """Of facility authpriv and severity info; a real socket receives them in their order."""

    async def scenario(caller: Any) -> None:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await caller.call(CreateTopicsRequest(topics=[topic]), 7)

    filesystem = MemoryFileSystem()
    with socket.socket(family, socket.SOCK_DGRAM) as receiver:
        receiver.bind((host, 0))
        receiver.settimeout(60)
        at = f"[{host}]" if ":" in host else host
        target = f"syslog:{at}:{receiver.getsockname()[1]}"
        run(scenario, {**AUTHORIZER, "audit.log.sink": target}, filesystem=filesystem)
        written = lines_of(filesystem)
        lines: list[Any] = []
        while len(lines) < len(written):
            priority, _, line = receiver.recv(65_536).partition(b" ")
            assert priority == b"<86>ottla-audit:"
            fields = json.loads(line)
            if fields["event"] != "head":
                lines.append(fields)
    assert lines == written


@pytest.mark.parametrize("target", ["fd:x", "fd:999", "syslog:host", "file:/tmp/x"])
def test_a_sink_that_is_none_is_refused_at_start(target: str) -> None:
    """With what it may be."""

    async def scenario(_caller: Any) -> None:
        raise AssertionError

    with pytest.raises(OttlaError) as refused:
        run(scenario, {**AUTHORIZER, "audit.log.sink": target})
    assert "audit.log.sink" in refused.value.message


def test_a_login_is_a_line_where_the_setting_wants_it() -> None:
    """Off by default; logins that repeat are counted."""
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="pw-of-bob";'
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.plain.without.tls.enable": "true",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
    }

    async def scenario(caller: Any) -> None:
        await caller.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        token = SaslAuthenticateRequest(auth_bytes=b"\0bob\0pw-of-bob")
        assert (await caller.call(token, 2)).error_code == 0

    assert played(scenario, settings) == []
    (line,) = played(scenario, {**settings, "audit.log.logins.enable": "true"})
    assert (line["event"], line["principal"], line["outcome"]) == ("login", "User:bob", "done")
    assert (line["mechanism"], line["host"]) == ("PLAIN", "127.0.0.1")
