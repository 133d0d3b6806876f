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
    acls,
    classic_membership,
    client_quotas,
    configs,
    consumer_groups,
    fetch,
    find_coordinator,
    group_offsets,
    groups,
    list_offsets,
    log_dirs,
    metadata,
    produce,
    reassignments,
    share_group_offsets,
    share_records,
    topics,
    transaction_listings,
    transactions,
    user_scram_credentials,
)
from ottla.wire.messages import cluster as cluster_messages
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
    asked = metadata.TopicRequest(name=TOPIC)
    return metadata.DescribeTopicPartitionsRequest(topics=[asked])


def _all_topic_partitions(_: UUID) -> Message:
    return metadata.DescribeTopicPartitionsRequest(topics=[])


def _epochs(_: UUID) -> Message:
    part = list_offsets.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    asked = list_offsets.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
    return list_offsets.OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])


def _delete_records(_: UUID) -> Message:
    part = topics.DeleteRecordsPartition(partition_index=0, offset=0)
    asked = topics.DeleteRecordsTopic(name=TOPIC, partitions=[part])
    return topics.DeleteRecordsRequest(topics=[asked], timeout_ms=1000)


def _create_topics(_: UUID) -> Message:
    asked = topics.CreatableTopic(name=NEW, num_partitions=1, replication_factor=1)
    return topics.CreateTopicsRequest(topics=[asked], timeout_ms=1000, validate_only=True)


def _delete_topics(_: UUID) -> Message:
    state = topics.DeleteTopicState(name=NEW)
    return topics.DeleteTopicsRequest(topics=[state], topic_names=[NEW], timeout_ms=1000)


def _create_partitions(_: UUID) -> Message:
    asked = topics.CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)
    return topics.CreatePartitionsRequest(topics=[asked], timeout_ms=1000, validate_only=True)


def _describe_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=["cleanup.policy"]
    )
    return lambda _: configs.DescribeConfigsRequest(resources=[asked])


def _alter_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = configs.ReplaceConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return lambda _: configs.AlterConfigsRequest(resources=[asked], validate_only=True)


def _change_configs(kind: int, name: str) -> Callable[[UUID], Message]:
    asked = configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return lambda _: configs.IncrementalAlterConfigsRequest(resources=[asked], validate_only=True)


def _find(key_type: int, name: str) -> Callable[[UUID], Message]:
    return lambda _: find_coordinator.FindCoordinatorRequest(
        key=name, coordinator_keys=[name], key_type=key_type
    )


def _join(_: UUID) -> Message:
    protocol = classic_membership.JoinGroupRequestProtocol(name="range", metadata=b"")
    # Too short a session timeout: what is allowed is refused for that, and nothing changes.
    return classic_membership.JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def _sync(_: UUID) -> Message:
    return classic_membership.SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m")


def _heartbeat(_: UUID) -> Message:
    return classic_membership.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")


def _leave(_: UUID) -> Message:
    member = classic_membership.MemberIdentity(member_id="m", group_instance_id=None)
    return classic_membership.LeaveGroupRequest(group_id=GROUP, member_id="m", members=[member])


def _consumer_heartbeat(_: UUID) -> Message:
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=5, subscribed_topic_names=[TOPIC]
    )


def _share_heartbeat(_: UUID) -> Message:
    return consumer_groups.ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        member_epoch=5,
        subscribed_topic_names=[TOPIC],
    )


def _describe_groups(_: UUID) -> Message:
    return groups.DescribeGroupsRequest(groups=[GROUP])


def _commit(topic_id: UUID) -> Message:
    part = group_offsets.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    asked = group_offsets.OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=[part])
    return group_offsets.OffsetCommitRequest(group_id=GROUP, topics=[asked])


def _offset_fetch(topic_id: UUID) -> Message:
    many = group_offsets.OffsetFetchRequestTopic(
        name=TOPIC, topic_id=topic_id, partition_indexes=[0]
    )
    return group_offsets.OffsetFetchRequest(
        group_id=GROUP,
        topics=[group_offsets.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        groups=[
            group_offsets.OffsetFetchRequestGroup(group_id=GROUP, member_id=None, topics=[many])
        ],
    )


def _offset_delete(_: UUID) -> Message:
    part = group_offsets.OffsetDeleteRequestPartition(partition_index=0)
    asked = group_offsets.OffsetDeleteRequestTopic(name=TOPIC, partitions=[part])
    return group_offsets.OffsetDeleteRequest(group_id=GROUP, topics=[asked])


def _init(transactional_id: str | None) -> Callable[[UUID], Message]:
    return lambda _: transactions.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000
    )


def _add_partitions(_: UUID) -> Message:
    asked = transactions.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=98765,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[asked],
    )


def _add_offsets(_: UUID) -> Message:
    return transactions.AddOffsetsToTxnRequest(
        transactional_id=TXN, producer_id=98765, producer_epoch=0, group_id=GROUP
    )


def _end(_: UUID) -> Message:
    return transactions.EndTxnRequest(
        transactional_id=TXN, producer_id=98765, producer_epoch=0, committed=False
    )


def _txn_commit(_: UUID) -> Message:
    part = group_offsets.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    asked = group_offsets.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    return group_offsets.TxnOffsetCommitRequest(
        transactional_id=TXN, group_id=GROUP, producer_id=98765, producer_epoch=0, topics=[asked]
    )


def _markers(_: UUID) -> Message:
    asked = transactions.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    marker = transactions.WritableTxnMarker(producer_id=98765, producer_epoch=0, topics=[asked])
    return transactions.WriteTxnMarkersRequest(markers=[marker])


def _describe_producers(_: UUID) -> Message:
    asked = transaction_listings.TopicRequest(name=TOPIC, partition_indexes=[0])
    return transaction_listings.DescribeProducersRequest(topics=[asked])


def _acl(_: UUID) -> Message:
    # Invalid: what is allowed is refused for that, and nothing changes.
    wrong = acls.AclCreation(
        resource_type=2,
        resource_name="t",
        principal="nobody",
        host="*",
        operation=3,
        permission_type=3,
    )
    return acls.CreateAclsRequest(creations=[wrong])


def _delete_acl(_: UUID) -> Message:
    wanted = acls.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="no-such",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return acls.DeleteAclsRequest(filters=[wanted])


def _describe_acl(_: UUID) -> Message:
    return acls.DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="no-such",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _alter_log_dirs(_: UUID) -> Message:
    asked = log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    there = log_dirs.AlterReplicaLogDir(path="/no/such/folder", topics=[asked])
    return log_dirs.AlterReplicaLogDirsRequest(dirs=[there])


def _quota(_: UUID) -> Message:
    entity = client_quotas.EntityData(entity_type="user", entity_name="u")
    entry = client_quotas.EntryData(entity=[entity])
    return client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _elect(_: UUID) -> Message:
    asked = reassignments.TopicPartitions(topic=TOPIC, partitions=[0])
    return reassignments.ElectLeadersRequest(topic_partitions=[asked], timeout_ms=1000)


def _share_fetch(topic_id: UUID) -> Message:
    part = share_records.FetchPartition(partition_index=0)
    asked = share_records.FetchTopic(topic_id=topic_id, partitions=[part])
    return share_records.ShareFetchRequest(
        group_id=GROUP,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        share_session_epoch=7,
        max_records=1,
        batch_size=1,
        topics=[asked],
    )


def _share_acknowledge(topic_id: UUID) -> Message:
    done = share_records.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    part = share_records.FetchPartition(partition_index=0, acknowledgement_batches=[done])
    asked = share_records.FetchTopic(topic_id=topic_id, partitions=[part])
    return share_records.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="AAAAAAAAAAAAAAAAAAAAAQ", share_session_epoch=7, topics=[asked]
    )


def _share_offsets(_: UUID) -> Message:
    asked = share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
        topic_name=TOPIC, partitions=[0]
    )
    wanted = share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=GROUP, topics=[asked]
    )
    return share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[wanted])


def _alter_share_offsets(_: UUID) -> Message:
    part = share_group_offsets.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=0
    )
    asked = share_group_offsets.AlterShareGroupOffsetsRequestTopic(
        topic_name=TOPIC, partitions=[part]
    )
    return share_group_offsets.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[asked])


def _delete_share_offsets(_: UUID) -> Message:
    asked = share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
    return share_group_offsets.DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[asked])


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
        lambda _: configs.ListConfigResourcesRequest(),
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
        lambda _: consumer_groups.ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        (0,),
    ),
    Case(
        "ShareGroupDescribe",
        (group(O.DESCRIBE),),
        lambda _: consumer_groups.ShareGroupDescribeRequest(group_ids=[GROUP]),
        (1,),
    ),
    Case(
        "DeleteGroups",
        (Need(O.DELETE, _G, "acl-no-group"),),
        lambda _: groups.DeleteGroupsRequest(groups_names=["acl-no-group"]),
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
        lambda _: transaction_listings.DescribeTransactionsRequest(
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
        lambda _: reassignments.AlterPartitionReassignmentsRequest(topics=[]),
        (0, 1),
    ),
    Case(
        "ListPartitionReassignments",
        (cluster(O.DESCRIBE),),
        lambda _: reassignments.ListPartitionReassignmentsRequest(topics=None),
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
        lambda _: log_dirs.DescribeLogDirsRequest(topics=[]),
        (3, 4),
        only_denials_agree=True,
    ),
    Case(
        "DescribeClientQuotas",
        (cluster(O.DESCRIBE_CONFIGS),),
        lambda _: client_quotas.DescribeClientQuotasRequest(),
        (0, 1),
    ),
    Case("AlterClientQuotas", (cluster(O.ALTER_CONFIGS),), _quota, (0, 1)),
    Case(
        "DescribeUserScramCredentials",
        (cluster(O.DESCRIBE),),
        lambda _: user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=[user_scram_credentials.UserName(name="u")]
        ),
        (0,),
    ),
    Case(
        "AlterUserScramCredentials",
        (cluster(O.ALTER),),
        lambda _: user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[user_scram_credentials.ScramCredentialDeletion(name="u", mechanism=1)]
        ),
        (0,),
    ),
    Case(
        "UpdateFeatures",
        (cluster(O.ALTER),),
        lambda _: cluster_messages.UpdateFeaturesRequest(feature_updates=[], validate_only=True),
        (1, 2),
        only_denials_agree=True,
    ),
    Case(
        "UnregisterBroker",
        (cluster(O.ALTER),),
        lambda _: cluster_messages.UnregisterBrokerRequest(broker_id=99),
        (0,),
        only_denials_agree=True,
    ),
    Case("CreateAcls", (cluster(O.ALTER),), _acl, (1, 3)),
    Case("DeleteAcls", (cluster(O.ALTER),), _delete_acl, (1, 3)),
    Case("DescribeAcls", (cluster(O.DESCRIBE),), _describe_acl, (1, 3)),
)
