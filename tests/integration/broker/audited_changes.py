"""Requests that change something, and the lines that each leaves in the audit log."""

from typing import Any
from uuid import UUID

from ottla.wire.messages import configs
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ottla.wire.messages.cluster import (
    FeatureUpdateKey,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.groups import DeleteGroupsRequest
from ottla.wire.messages.log_cleaning import CompactLogRequest
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.wire.messages.undo import RestoreTopicRequest
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALT, SALTED = b"the salt of alice", b"the salted password of alice 32!"
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
                {"partition_count": 2, "replication_factor": 1, "settings": {"retention.ms": "7"}},
                "done",
            ),
            (
                "Topic:bad name",
                {"partition_count": 1, "replication_factor": 1, "settings": {}},
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
        [("Topic:t", {"partition_count": 3}, "done")],
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
        configs.IncrementalAlterConfigsRequest(
            resources=[
                configs.AlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[
                        configs.AlterableConfig(name=name, value=value)
                        for name, value in (
                            ("ssl.key.password", "not to be seen"),
                            ("listener.name.plaintext.ssl.key.password", "not to be seen"),
                            ("log.cleaner.threads", "2"),
                        )
                    ],
                ),
                configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name="t",
                    configs=[
                        configs.AlterableConfig(
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
                            "name": "listener.name.plaintext.ssl.key.password",
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
        configs.AlterConfigsRequest(
            resources=[
                configs.ReplaceConfigsResource(
                    resource_type=32,
                    resource_name="g",
                    configs=[
                        configs.ReplacingConfig(name="consumer.session.timeout.ms", value="50000")
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
                {"topic": "t", "replicas": {"0": [9]}},
                "INVALID_REPLICA_ASSIGNMENT",
            ),
            (
                CLUSTER,
                {"topic": "t", "replicas": {"1": None}},
                "NO_REASSIGNMENT_IN_PROGRESS",
            ),
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
                {
                    "producer_id": 7,
                    "producer_epoch": 2,
                    "marker": "abort",
                    "topic": "t",
                    "partitions": [0],
                },
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
    # Over a listener without logins no client gets tokens; others are in a test of their own.
    (
        CreateDelegationTokenRequest(
            owner_principal_type="User",
            owner_principal_name="bob",
            renewers=[TokenPrincipal(principal_type="User", principal_name="carol")],
        ),
        3,
        [
            (
                "User:User:bob",
                {"token": "", "renewers": ["User:carol"]},
                "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            )
        ],
    ),
    (
        RenewDelegationTokenRequest(hmac=b"not to be seen"),
        2,
        [("DelegationToken:a42e226b6d57a947", {}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")],
    ),
    (
        ExpireDelegationTokenRequest(hmac=b"not to be seen"),
        2,
        [("DelegationToken:a42e226b6d57a947", {}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")],
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
    (
        RestoreTopicRequest(topic_id=UUID(int=7), name="none"),
        0,
        [
            (
                "Topic:none",
                {"topic_id": "00000000-0000-0000-0000-000000000007"},
                "UNKNOWN_TOPIC_ID",
            )
        ],
    ),
]
