"""The requests of the matrix: what each needs, and what is answered where that is denied.

Taken from Kafka's documentation, "Authorization Primitives in Kafka", not from Ottla's table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.record.builder import build_batch
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from ottla.wire.notation import Message

TOPIC, GROUP, TXN = "acl-orders", "acl-readers", "acl-transfers"
# A topic that does not exist.
NEW = "acl-new"
_T, _G, _X, _C = (
    AclResource.TOPIC,
    AclResource.GROUP,
    AclResource.TRANSACTIONAL_ID,
    AclResource.CLUSTER,
)
O = AclOperation  # noqa: E741  # As short as the table needs.


@dataclass(frozen=True)
class Need:
    """An operation on a resource, and the error where it is denied."""

    operation: AclOperation
    kind: AclResource
    name: str

    @property
    def code(self) -> ErrorCode:
        return {
            _T: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            _G: ErrorCode.GROUP_AUTHORIZATION_FAILED,
            _X: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _C: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        }[self.kind]


def topic(operation: AclOperation) -> Need:
    return Need(operation, _T, TOPIC)


def group(operation: AclOperation) -> Need:
    return Need(operation, _G, GROUP)


def transaction(operation: AclOperation) -> Need:
    return Need(operation, _X, TXN)


def cluster(operation: AclOperation) -> Need:
    return Need(operation, _C, CLUSTER_NAME)


@dataclass(frozen=True)
class Case:
    """A request that is served if all of `needs` are allowed.

    `make` gets the id of the topic. Its versions are those at which it looks different.
    """

    name: str
    needs: tuple[Need, ...]
    make: Callable[[UUID], Message]
    versions: tuple[int, ...]
    # Without what it needs, the resource is missing in the answer: there is no error.
    hides: bool = False
    # Kafka's answer to an allowed request differs in more than authorization.
    only_denials_agree: bool = False
    # Where a DENY beside an ALLOW gives another error than no rule.
    denied_code: ErrorCode | None = None
    # The error of every denial, where it is not that of the need.
    refused_code: ErrorCode | None = None


def batch(*, transactional: bool = False) -> bytes:
    if transactional:
        return bytes(
            build_batch(
                [0],
                None,
                [b"x"],
                producer_id=1,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        )
    return bytes(build_batch([0], None, [b"x"]))


def _produce(topic_id: UUID, *, transactional: bool = False) -> Message:
    part = produce.PartitionProduceData(index=0, records=batch(transactional=transactional))
    data = produce.TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=[part])
    return produce.ProduceRequest(
        transactional_id=TXN if transactional else None, acks=1, timeout_ms=1000, topic_data=[data]
    )


def _fetch(topic_id: UUID) -> Message:
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    asked = fetch.FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=[part])
    return fetch.FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[asked]
    )


def _list_offsets(_: UUID) -> Message:
    part = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    asked = list_offsets.ListOffsetsTopic(name=TOPIC, partitions=[part])
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=[asked])


def _metadata(_: UUID) -> Message:
    asked = metadata.MetadataRequestTopic(name=TOPIC)
    return metadata.MetadataRequest(topics=[asked], allow_auto_topic_creation=False)


def _all_metadata(_: UUID) -> Message:
    return metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)


def _metadata_by_id(topic_id: UUID) -> Message:
    asked = metadata.MetadataRequestTopic(name=None, topic_id=topic_id)
    return metadata.MetadataRequest(topics=[asked], allow_auto_topic_creation=False)


def _topic_operations(_: UUID) -> Message:
    asked = metadata.MetadataRequestTopic(name=TOPIC)
    return metadata.MetadataRequest(
        topics=[asked], allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _describe_topic_partitions(_: UUID) -> Message:
    asked = describe_topic_partitions.TopicRequest(name=TOPIC)
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[asked])


def _all_topic_partitions(_: UUID) -> Message:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[])


def _epochs(_: UUID) -> Message:
    part = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    asked = offset_for_leader_epoch.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])


def _delete_records(_: UUID) -> Message:
    part = delete_records.DeleteRecordsPartition(partition_index=0, offset=0)
    asked = delete_records.DeleteRecordsTopic(name=TOPIC, partitions=[part])
    return delete_records.DeleteRecordsRequest(topics=[asked], timeout_ms=1000)


def _create_topics(_: UUID) -> Message:
    asked = create_topics.CreatableTopic(name=NEW, num_partitions=1, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[asked], timeout_ms=1000, validate_only=True)


def _delete_topics(_: UUID) -> Message:
    state = delete_topics.DeleteTopicState(name=NEW)
    return delete_topics.DeleteTopicsRequest(topics=[state], topic_names=[NEW], timeout_ms=1000)


def _create_partitions(_: UUID) -> Message:
    asked = create_partitions.CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)
    return create_partitions.CreatePartitionsRequest(
        topics=[asked], timeout_ms=1000, validate_only=True
    )


def _describe_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=["cleanup.policy"]
    )
    return lambda _: describe_configs.DescribeConfigsRequest(resources=[asked])


def _alter_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return lambda _: alter_configs.AlterConfigsRequest(resources=[asked], validate_only=True)


def _change_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[]
    )
    return lambda _: incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[asked], validate_only=True
    )


def _find(key_type: int, name: str) -> Callable[[UUID], Message]:
    return lambda _: find_coordinator.FindCoordinatorRequest(
        key=name, coordinator_keys=[name], key_type=key_type
    )


def _join(_: UUID) -> Message:
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    # Too short a session timeout: what is allowed is refused for that, and nothing changes.
    return join_group.JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def _sync(_: UUID) -> Message:
    return sync_group.SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m")


def _heartbeat(_: UUID) -> Message:
    return heartbeat.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")


def _leave(_: UUID) -> Message:
    member = leave_group.MemberIdentity(member_id="m", group_instance_id=None)
    return leave_group.LeaveGroupRequest(group_id=GROUP, member_id="m", members=[member])


def _consumer_heartbeat(_: UUID) -> Message:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=5, subscribed_topic_names=[TOPIC]
    )


def _share_heartbeat(_: UUID) -> Message:
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        member_epoch=5,
        subscribed_topic_names=[TOPIC],
    )


def _describe_groups(_: UUID) -> Message:
    return describe_groups.DescribeGroupsRequest(groups=[GROUP])


def _commit(topic_id: UUID) -> Message:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    asked = offset_commit.OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=[part])
    return offset_commit.OffsetCommitRequest(group_id=GROUP, topics=[asked])


def _offset_fetch(topic_id: UUID) -> Message:
    many = offset_fetch.OffsetFetchRequestTopics(
        name=TOPIC, topic_id=topic_id, partition_indexes=[0]
    )
    return offset_fetch.OffsetFetchRequest(
        group_id=GROUP,
        topics=[offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        groups=[
            offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, member_id=None, topics=[many])
        ],
    )


def _offset_delete(_: UUID) -> Message:
    part = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    asked = offset_delete.OffsetDeleteRequestTopic(name=TOPIC, partitions=[part])
    return offset_delete.OffsetDeleteRequest(group_id=GROUP, topics=[asked])


def _init(transactional_id: str | None) -> Callable[[UUID], Message]:
    return lambda _: init_producer_id.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000
    )


def _add_partitions(_: UUID) -> Message:
    asked = add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=98765,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[asked],
    )


def _add_offsets(_: UUID) -> Message:
    return add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=TXN, producer_id=98765, producer_epoch=0, group_id=GROUP
    )


def _end(_: UUID) -> Message:
    return end_txn.EndTxnRequest(
        transactional_id=TXN, producer_id=98765, producer_epoch=0, committed=False
    )


def _txn_commit(_: UUID) -> Message:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    asked = txn_offset_commit.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=TXN, group_id=GROUP, producer_id=98765, producer_epoch=0, topics=[asked]
    )


def _markers(_: UUID) -> Message:
    asked = write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=98765, producer_epoch=0, topics=[asked]
    )
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def _describe_producers(_: UUID) -> Message:
    asked = describe_producers.TopicRequest(name=TOPIC, partition_indexes=[0])
    return describe_producers.DescribeProducersRequest(topics=[asked])


def _acl(_: UUID) -> Message:
    # Invalid: what is allowed is refused for that, and nothing changes.
    wrong = create_acls.AclCreation(
        resource_type=2,
        resource_name="t",
        principal="nobody",
        host="*",
        operation=3,
        permission_type=3,
    )
    return create_acls.CreateAclsRequest(creations=[wrong])


def _delete_acl(_: UUID) -> Message:
    wanted = delete_acls.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="no-such",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return delete_acls.DeleteAclsRequest(filters=[wanted])


def _describe_acl(_: UUID) -> Message:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="no-such",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _alter_log_dirs(_: UUID) -> Message:
    asked = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    there = alter_replica_log_dirs.AlterReplicaLogDir(path="/no/such/folder", topics=[asked])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[there])


def _quota(_: UUID) -> Message:
    entity = alter_client_quotas.EntityData(entity_type="user", entity_name="u")
    entry = alter_client_quotas.EntryData(entity=[entity])
    return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _elect(_: UUID) -> Message:
    asked = elect_leaders.TopicPartitions(topic=TOPIC, partitions=[0])
    return elect_leaders.ElectLeadersRequest(topic_partitions=[asked], timeout_ms=1000)


def _share_fetch(topic_id: UUID) -> Message:
    part = share_fetch.FetchPartition(partition_index=0)
    asked = share_fetch.FetchTopic(topic_id=topic_id, partitions=[part])
    return share_fetch.ShareFetchRequest(
        group_id=GROUP,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        share_session_epoch=7,
        max_records=1,
        batch_size=1,
        topics=[asked],
    )


def _share_acknowledge(topic_id: UUID) -> Message:
    done = share_acknowledge.AcknowledgementBatch(
        first_offset=0, last_offset=0, acknowledge_types=[1]
    )
    part = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=[done])
    asked = share_acknowledge.AcknowledgeTopic(topic_id=topic_id, partitions=[part])
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="AAAAAAAAAAAAAAAAAAAAAQ", share_session_epoch=7, topics=[asked]
    )


def _share_offsets(_: UUID) -> Message:
    asked = describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
        topic_name=TOPIC, partitions=[0]
    )
    wanted = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=GROUP, topics=[asked]
    )
    return describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[wanted])


def _alter_share_offsets(_: UUID) -> Message:
    part = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=0
    )
    asked = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
        topic_name=TOPIC, partitions=[part]
    )
    return alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[asked])


def _delete_share_offsets(_: UUID) -> Message:
    asked = delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
    return delete_share_group_offsets.DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[asked])


CASES: tuple[Case, ...] = (
    Case("Produce", (topic(O.WRITE),), _produce, (3, 12, 13)),
    Case(
        "Produce in a transaction",
        (topic(O.WRITE), transaction(O.WRITE)),
        lambda topic_id: _produce(topic_id, transactional=True),
        (3, 11, 13),
        only_denials_agree=True,
    ),
    Case("Fetch", (topic(O.READ),), _fetch, (4, 12, 13, 18)),
    Case("ListOffsets", (topic(O.DESCRIBE),), _list_offsets, (1, 10)),
    Case("Metadata", (topic(O.DESCRIBE),), _metadata, (1, 8, 12)),
    Case("Metadata of all topics", (topic(O.DESCRIBE),), _all_metadata, (1, 12), hides=True),
    Case("Metadata by id", (topic(O.DESCRIBE),), _metadata_by_id, (12, 13)),
    Case("Metadata with operations", (topic(O.DESCRIBE),), _topic_operations, (8, 12)),
    Case("DescribeTopicPartitions", (topic(O.DESCRIBE),), _describe_topic_partitions, (0,)),
    Case(
        "DescribeTopicPartitions of all",
        (topic(O.DESCRIBE),),
        _all_topic_partitions,
        (0,),
        hides=True,
    ),
    Case("OffsetForLeaderEpoch", (topic(O.DESCRIBE),), _epochs, (2, 4)),
    Case("DeleteRecords", (topic(O.DELETE),), _delete_records, (0, 2)),
    Case("CreateTopics", (Need(O.CREATE, _T, NEW),), _create_topics, (2, 5, 7)),
    Case(
        "DeleteTopics",
        (Need(O.DELETE, _T, NEW),),
        _delete_topics,
        (1, 5, 6),
        # The ALLOW includes DESCRIBE, which the DENY of DELETE does not take away.
        denied_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Case(
        "DeleteTopics by the cluster",
        (cluster(O.DELETE),),
        _delete_topics,
        (1, 5, 6),
        refused_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    Case("CreatePartitions", (topic(O.ALTER),), _create_partitions, (0, 3)),
    Case(
        "DescribeConfigs of a topic",
        (topic(O.DESCRIBE_CONFIGS),),
        _describe_configs(2, TOPIC),
        (1, 4),
    ),
    Case(
        "DescribeConfigs of a broker",
        (cluster(O.DESCRIBE_CONFIGS),),
        _describe_configs(4, "1"),
        (1, 4),
    ),
    Case(
        "DescribeConfigs of a group",
        (group(O.DESCRIBE_CONFIGS),),
        _describe_configs(32, GROUP),
        (4,),
    ),
    Case("AlterConfigs of a topic", (topic(O.ALTER_CONFIGS),), _alter_configs(2, TOPIC), (0, 2)),
    Case(
        "IncrementalAlterConfigs of a topic",
        (topic(O.ALTER_CONFIGS),),
        _change_configs(2, TOPIC),
        (0, 1),
    ),
    Case(
        "IncrementalAlterConfigs of a broker",
        (cluster(O.ALTER_CONFIGS),),
        _change_configs(4, "1"),
        (0, 1),
    ),
    Case(
        "IncrementalAlterConfigs of a group",
        (group(O.ALTER_CONFIGS),),
        _change_configs(32, GROUP),
        (1,),
    ),
    Case(
        "ListConfigResources",
        (cluster(O.DESCRIBE_CONFIGS),),
        lambda _: list_config_resources.ListConfigResourcesRequest(),
        (0,),
    ),
    Case("FindCoordinator of a group", (group(O.DESCRIBE),), _find(0, GROUP), (0, 3, 4, 6)),
    Case(
        "FindCoordinator of a transactional id",
        (transaction(O.DESCRIBE),),
        _find(1, TXN),
        (1, 4),
    ),
    Case("JoinGroup", (group(O.READ),), _join, (2, 9)),
    Case("SyncGroup", (group(O.READ),), _sync, (0, 3)),
    Case("Heartbeat", (group(O.READ),), _heartbeat, (0, 4)),
    Case("LeaveGroup", (group(O.READ),), _leave, (0, 5)),
    Case("ConsumerGroupHeartbeat", (group(O.READ), topic(O.DESCRIBE)), _consumer_heartbeat, (0, 1)),
    Case("ShareGroupHeartbeat", (group(O.READ), topic(O.DESCRIBE)), _share_heartbeat, (1,)),
    Case("DescribeGroups", (group(O.DESCRIBE),), _describe_groups, (0, 5)),
    Case(
        "ConsumerGroupDescribe",
        (group(O.DESCRIBE),),
        lambda _: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        (0,),
    ),
    Case(
        "ShareGroupDescribe",
        (group(O.DESCRIBE),),
        lambda _: share_group_describe.ShareGroupDescribeRequest(group_ids=[GROUP]),
        (1,),
    ),
    Case(
        "DeleteGroups",
        (Need(O.DELETE, _G, "acl-no-group"),),
        lambda _: delete_groups.DeleteGroupsRequest(groups_names=["acl-no-group"]),
        (0, 2),
    ),
    Case("OffsetCommit", (group(O.READ), topic(O.READ)), _commit, (2, 9, 10)),
    Case("OffsetFetch", (group(O.DESCRIBE), topic(O.DESCRIBE)), _offset_fetch, (1, 7, 8, 10)),
    Case("OffsetDelete", (group(O.DELETE), topic(O.READ)), _offset_delete, (0,)),
    Case("InitProducerId in a transaction", (transaction(O.WRITE),), _init(TXN), (0, 5)),
    Case("InitProducerId", (cluster(O.IDEMPOTENT_WRITE),), _init(None), (0, 5)),
    Case("AddPartitionsToTxn", (transaction(O.WRITE), topic(O.WRITE)), _add_partitions, (0, 3)),
    Case("AddOffsetsToTxn", (transaction(O.WRITE), group(O.READ)), _add_offsets, (0, 4)),
    Case("EndTxn", (transaction(O.WRITE),), _end, (0, 4)),
    Case(
        "TxnOffsetCommit",
        (transaction(O.WRITE), group(O.READ), topic(O.READ)),
        _txn_commit,
        (0, 4),
        only_denials_agree=True,
    ),
    Case("WriteTxnMarkers", (cluster(O.ALTER),), _markers, (1,), only_denials_agree=True),
    Case("DescribeProducers", (topic(O.READ),), _describe_producers, (0,), only_denials_agree=True),
    Case(
        "DescribeTransactions",
        (Need(O.DESCRIBE, _X, "acl-no-transfer"),),
        lambda _: describe_transactions.DescribeTransactionsRequest(
            transactional_ids=["acl-no-transfer"]
        ),
        (0,),
    ),
    Case("ShareFetch", (group(O.READ),), _share_fetch, (1, 2)),
    Case("ShareAcknowledge", (group(O.READ),), _share_acknowledge, (1, 2)),
    Case(
        "DescribeShareGroupOffsets",
        (group(O.DESCRIBE), topic(O.DESCRIBE)),
        _share_offsets,
        (0,),
        only_denials_agree=True,
    ),
    Case(
        "AlterShareGroupOffsets",
        # The group does not exist, which Kafka finds before it answers for denied topics.
        (group(O.READ),),
        _alter_share_offsets,
        (0,),
        only_denials_agree=True,
    ),
    Case(
        "DeleteShareGroupOffsets",
        (group(O.DELETE),),
        _delete_share_offsets,
        (0,),
        only_denials_agree=True,
    ),
    Case(
        "AlterPartitionReassignments",
        (cluster(O.ALTER),),
        lambda _: alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[]),
        (0, 1),
    ),
    Case(
        "ListPartitionReassignments",
        (cluster(O.DESCRIBE),),
        lambda _: list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
        (0,),
    ),
    Case("ElectLeaders", (cluster(O.ALTER),), _elect, (0, 2)),
    Case(
        "AlterReplicaLogDirs",
        (cluster(O.ALTER),),
        _alter_log_dirs,
        (1, 2),
        only_denials_agree=True,
    ),
    Case(
        "DescribeLogDirs",
        (cluster(O.DESCRIBE),),
        lambda _: describe_log_dirs.DescribeLogDirsRequest(topics=[]),
        (3, 4),
        only_denials_agree=True,
    ),
    Case(
        "DescribeClientQuotas",
        (cluster(O.DESCRIBE_CONFIGS),),
        lambda _: describe_client_quotas.DescribeClientQuotasRequest(),
        (0, 1),
    ),
    Case("AlterClientQuotas", (cluster(O.ALTER_CONFIGS),), _quota, (0, 1)),
    Case(
        "DescribeUserScramCredentials",
        (cluster(O.DESCRIBE),),
        lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=[describe_user_scram_credentials.UserName(name="u")]
        ),
        (0,),
    ),
    Case(
        "AlterUserScramCredentials",
        (cluster(O.ALTER),),
        lambda _: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[alter_user_scram_credentials.ScramCredentialDeletion(name="u", mechanism=1)]
        ),
        (0,),
    ),
    Case(
        "UpdateFeatures",
        (cluster(O.ALTER),),
        lambda _: update_features.UpdateFeaturesRequest(feature_updates=[], validate_only=True),
        (1, 2),
        only_denials_agree=True,
    ),
    Case(
        "UnregisterBroker",
        (cluster(O.ALTER),),
        lambda _: unregister_broker.UnregisterBrokerRequest(broker_id=99),
        (0,),
        only_denials_agree=True,
    ),
    Case("CreateAcls", (cluster(O.ALTER),), _acl, (1, 3)),
    Case("DeleteAcls", (cluster(O.ALTER),), _delete_acl, (1, 3)),
    Case("DescribeAcls", (cluster(O.DESCRIBE),), _describe_acl, (1, 3)),
)
