"""Which lines requests leave in the audit log of a broker in this process."""

import base64
import io
import json
from typing import Any

import pytest

from ottla.base.settings import BrokerSettings
from ottla.broker.audit.audit import is_audited
from ottla.broker.audit.changes import CHANGES
from ottla.broker.process.apis import served
from ottla.security.acl import Acl, Pattern
from ottla.security.audit.names import parse_file_name
from ottla.security.audit.verification import Verification
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.api import BROKER_APIS, ApiKey
from ottla.wire.messages import alter_configs, incremental_alter_configs
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.compact_log import CompactLogRequest
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.log_ends import LogEndsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .inprocess import run

# What clients may send and what is no administrative change.
READING = {
    ApiKey.API_VERSIONS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CLEANER,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_DECISIONS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_REBALANCES,
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
    ApiKey.OFFSET_LEDGER,
    ApiKey.RETENTION_STANDING,
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


def test_every_api_that_clients_may_call_is_audited_or_changes_nothing() -> None:
    """A new API that changes something needs a function in `ottla.broker.audit.changes`."""
    clients = set(served()) - BROKER_APIS
    assert set(CHANGES) | READING | WORKING == clients
    assert not set(CHANGES) & (READING | WORKING)


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
SALT, SALTED = b"the salt of alice", b"the salted password of alice 32!"


def lines_of(filesystem: MemoryFileSystem) -> list[dict[str, Any]]:
    """All lines, whose chain must be intact."""
    names = [name for name in filesystem.listdir("/data") if name.endswith(".log")]
    check, lines = Verification(1), list[dict[str, Any]]()
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


CLUSTER = "Cluster:kafka-cluster"
RULE = "DENY User:bob from 10.0.0.1 READ on Topic:PREFIXED:se"
_ACL = {
    "resource_type": 2,
    "resource_name": "se",
    "principal": "User:bob",
    "host": "10.0.0.1",
    "operation": 3,
}
# A request, its version, and the lines it leaves.
CHANGED: list[tuple[Any, int, list[tuple[str, dict[str, Any], str]]]] = [
    (
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="t",
                    num_partitions=2,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="retention.ms", value="7")],
                ),
                CreatableTopic(name="bad name", num_partitions=1, replication_factor=1),
            ]
        ),
        7,
        [
            (
                "Topic:t",
                {"partitions": 2, "replication_factor": 1, "settings": {"retention.ms": "7"}},
                "done",
            ),
            (
                "Topic:bad name",
                {"partitions": 1, "replication_factor": 1, "settings": {}},
                "INVALID_TOPIC_EXCEPTION",
            ),
        ],
    ),
    (
        CreateTopicsRequest(
            topics=[CreatableTopic(name="u", num_partitions=1, replication_factor=1)],
            validate_only=True,
        ),
        7,
        [],
    ),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True),
        9,
        [("Topic:auto", {"automatically": True}, "done")],
    ),
    (
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)]
        ),
        3,
        [("Topic:t", {"partitions": 3}, "done")],
    ),
    (
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="t", partitions=[DeleteRecordsPartition(partition_index=1, offset=-1)]
                )
            ]
        ),
        2,
        [("Topic:t", {"before_offsets": {"1": -1}}, "done")],
    ),
    (
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[
                        incremental_alter_configs.AlterableConfig(name=name, value=value)
                        for name, value in (
                            ("ssl.key.password", "not to be seen"),
                            ("listener.name.x.ssl.key.password", "not to be seen"),
                            ("log.cleaner.threads", "2"),
                        )
                    ],
                ),
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name="t",
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name="segment.bytes", config_operation=1, value=None
                        )
                    ],
                ),
            ]
        ),
        1,
        [
            (
                CLUSTER,
                {
                    "of": "broker:1",
                    "settings": [
                        {"name": "ssl.key.password", "operation": "set", "value": "(hidden)"},
                        {
                            "name": "listener.name.x.ssl.key.password",
                            "operation": "set",
                            "value": "(hidden)",
                        },
                        {"name": "log.cleaner.threads", "operation": "set", "value": "2"},
                    ],
                },
                "INVALID_REQUEST",
            ),
            (
                "Topic:t",
                {
                    "of": "topic:t",
                    "settings": [{"name": "segment.bytes", "operation": "delete", "value": None}],
                },
                "done",
            ),
        ],
    ),
    (
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=32,
                    resource_name="g",
                    configs=[
                        alter_configs.AlterableConfig(
                            name="consumer.session.timeout.ms", value="50000"
                        )
                    ],
                )
            ]
        ),
        2,
        [
            (
                "Group:g",
                {
                    "of": "group:g",
                    "settings": [
                        {
                            "name": "consumer.session.timeout.ms",
                            "operation": "set",
                            "value": "50000",
                        }
                    ],
                },
                "done",
            )
        ],
    ),
    (
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name="t",
                    partitions=[
                        ReassignablePartition(partition_index=0, replicas=[9]),
                        ReassignablePartition(partition_index=1, replicas=None),
                    ],
                )
            ]
        ),
        0,
        [
            (
                CLUSTER,
                {"topic": "t", "replicas": {"0": [9], "1": None}},
                "INVALID_REPLICA_ASSIGNMENT",
            )
        ],
    ),
    (
        ElectLeadersRequest(
            election_type=1, topic_partitions=[TopicPartitions(topic="t", partitions=[0])]
        ),
        2,
        [
            (
                CLUSTER,
                {"election": "unclean", "topic": "t", "partitions": [0]},
                "ELECTION_NOT_NEEDED",
            )
        ],
    ),
    (
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path="/nowhere", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]
                )
            ]
        ),
        2,
        [
            (
                CLUSTER,
                {"folder": "/nowhere", "topic": "t", "partitions": [0]},
                "LOG_DIR_NOT_FOUND",
            )
        ],
    ),
    (
        CompactLogRequest(topic="t", partition=0, action=2),
        0,
        [("Topic:t", {"partition": 0, "action": "compact"}, "POLICY_VIOLATION")],
    ),
    (CompactLogRequest(topic="t", partition=0, action=0), 0, []),
    (
        OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
                    ],
                )
            ],
        ),
        8,
        [("Group:g", {"topic": "t", "offsets": {"0": 0}}, "done")],
    ),
    (
        OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=3, member_id="m"),
        8,
        [],
    ),
    (
        OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        0,
        [("Group:g", {"topic": "t", "partitions": [0]}, "done")],
    ),
    (DeleteGroupsRequest(groups_names=["g"]), 2, [("Group:g", {}, "done")]),
    (
        AlterShareGroupOffsetsRequest(
            group_id="none",
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name="t",
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=5)
                    ],
                )
            ],
        ),
        0,
        [("Group:none", {"topic": "t", "offsets": {"0": 5}}, "done")],
    ),
    (
        DeleteShareGroupOffsetsRequest(
            group_id="none", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
        ),
        0,
        [("Group:none", {"topic": "t"}, "done")],
    ),
    (
        WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=7,
                    producer_epoch=2,
                    transaction_result=False,
                    topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
                )
            ]
        ),
        1,
        [
            (
                CLUSTER,
                {"producer_id": 7, "producer_epoch": 2, "marker": "abort", "topics": {"t": [0]}},
                "done",
            )
        ],
    ),
    (
        AlterUserScramCredentialsRequest(
            upsertions=[
                ScramCredentialUpsertion(
                    name="alice", mechanism=1, iterations=4096, salt=SALT, salted_password=SALTED
                )
            ],
            deletions=[ScramCredentialDeletion(name="bob", mechanism=2)],
        ),
        0,
        [
            (
                CLUSTER,
                {"user": "bob", "mechanism": "SCRAM-SHA-512", "credential": "removed"},
                "RESOURCE_NOT_FOUND",
            ),
            (
                CLUSTER,
                {
                    "user": "alice",
                    "mechanism": "SCRAM-SHA-256",
                    "credential": "set",
                    "iterations": 4096,
                },
                "done",
            ),
        ],
    ),
    (
        AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[EntityData(entity_type="user", entity_name=None)],
                    ops=[
                        OpData(key="producer_byte_rate", value=1024.0),
                        OpData(key="consumer_byte_rate", remove=True),
                    ],
                )
            ]
        ),
        1,
        [
            (
                CLUSTER,
                {
                    "entity": {"user": None},
                    "quotas": {"producer_byte_rate": "1024.0", "consumer_byte_rate": None},
                },
                "done",
            )
        ],
    ),
    (
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="nonsense", max_version_level=3)]
        ),
        1,
        [(CLUSTER, {"feature": "nonsense", "level": 3}, "INVALID_UPDATE_VERSION")],
    ),
    (
        UnregisterBrokerRequest(broker_id=77),
        0,
        [(CLUSTER, {"unregistered": 77}, "BROKER_ID_NOT_REGISTERED")],
    ),
    (
        CreateAclsRequest(
            creations=[AclCreation(**_ACL, resource_pattern_type=4, permission_type=2)]
        ),
        3,
        [(CLUSTER, {"added": RULE}, "done")],
    ),
    (
        DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=1,
                    resource_name_filter=None,
                    pattern_type_filter=1,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                )
            ]
        ),
        3,
        [(CLUSTER, {"removed": RULE}, "done")],
    ),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="none")]),
        6,
        [
            (
                "Topic:none",
                {"topic_id": "00000000-0000-0000-0000-000000000000"},
                "UNKNOWN_TOPIC_OR_PARTITION",
            )
        ],
    ),
]


def test_each_change_leaves_its_lines_and_no_secret() -> None:
    """For every API that changes something; what is only tried or described leaves none."""
    expected = [
        (ApiKey(type(body).__api_key__).name, *line)
        for body, _version, lines in CHANGED
        for line in lines
    ]

    async def scenario(caller: Any) -> None:
        await wait_for_coordinator(caller)
        for body, version, _lines in CHANGED:
            await caller.call(body, version)

    lines = played(scenario)
    assert [short(line) for line in lines] == expected
    assert {api for api, *_ in expected} == {ApiKey(api).name for api in CHANGES} | {"METADATA"}
    text = json.dumps(lines)
    for secret in (SALT, SALTED, b"not to be seen"):
        assert secret.decode() not in text
        assert base64.b64encode(secret).decode() not in text
    assert {line["rule"] for line in lines} == {"allow.everyone.if.no.acl.found"}
    assert lines[0] == {
        "api": "CREATE_TOPICS",
        "broker": 1,
        "client_id": "tester",
        "detail": {"partitions": 2, "replication_factor": 1, "settings": {"retention.ms": "7"}},
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
        (ApiKey(type(body).__api_key__).name, *line)
        for body, _version, lines in DENIED
        for line in lines
    ]

    async def scenario(caller: Any) -> None:
        pattern = Pattern(AclResource.TOPIC, "t")
        acl = Acl(pattern, "User:*", "*", AclOperation.WRITE, Permission.DENY)
        await caller.broker.parts.acls.create([acl])
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
