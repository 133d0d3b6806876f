"""The APIs that a broker serves: one handler for each, built from the broker's parts."""

from typing import Any

from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.handlers.add_offsets_to_txn import AddOffsetsToTxn
from ottla.broker.handlers.add_partitions_to_txn import AddPartitionsToTxn
from ottla.broker.handlers.alter_client_quotas import AlterClientQuotas
from ottla.broker.handlers.alter_configs import AlterConfigs
from ottla.broker.handlers.alter_partition_reassignments import AlterPartitionReassignments
from ottla.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirs
from ottla.broker.handlers.alter_share_group_offsets import AlterShareGroupOffsets
from ottla.broker.handlers.alter_user_scram_credentials import AlterUserScramCredentials
from ottla.broker.handlers.api_versions import ApiVersions
from ottla.broker.handlers.broker_handshake import BrokerHandshake
from ottla.broker.handlers.compact_log import CompactLog
from ottla.broker.handlers.consumer_group_describe import ConsumerGroupDescribe
from ottla.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeat
from ottla.broker.handlers.controlled_shutdown import ControlledShutdown
from ottla.broker.handlers.create_acls import CreateAcls
from ottla.broker.handlers.create_delegation_token import CreateDelegationToken
from ottla.broker.handlers.create_partitions import CreatePartitions
from ottla.broker.handlers.create_topics import CreateTopics
from ottla.broker.handlers.delete_acls import DeleteAcls
from ottla.broker.handlers.delete_groups import DeleteGroups
from ottla.broker.handlers.delete_records import DeleteRecords
from ottla.broker.handlers.delete_share_group_offsets import DeleteShareGroupOffsets
from ottla.broker.handlers.delete_share_group_state import DeleteShareGroupState
from ottla.broker.handlers.delete_topics import DeleteTopics
from ottla.broker.handlers.describe_acls import DescribeAcls
from ottla.broker.handlers.describe_cleaner import DescribeCleaner
from ottla.broker.handlers.describe_client_quotas import DescribeClientQuotas
from ottla.broker.handlers.describe_cluster import DescribeCluster
from ottla.broker.handlers.describe_configs import DescribeConfigs
from ottla.broker.handlers.describe_decisions import DescribeDecisions
from ottla.broker.handlers.describe_delegation_token import DescribeDelegationToken
from ottla.broker.handlers.describe_groups import DescribeGroups
from ottla.broker.handlers.describe_log_dirs import DescribeLogDirs
from ottla.broker.handlers.describe_producers import DescribeProducers
from ottla.broker.handlers.describe_rebalances import DescribeRebalances
from ottla.broker.handlers.describe_share_group_offsets import DescribeShareGroupOffsets
from ottla.broker.handlers.describe_topic_partitions import DescribeTopicPartitions
from ottla.broker.handlers.describe_transactions import DescribeTransactions
from ottla.broker.handlers.describe_user_scram_credentials import DescribeUserScramCredentials
from ottla.broker.handlers.elect_leaders import ElectLeaders
from ottla.broker.handlers.end_txn import EndTxn
from ottla.broker.handlers.expire_delegation_token import ExpireDelegationToken
from ottla.broker.handlers.fetch import Fetch
from ottla.broker.handlers.find_coordinator import FindCoordinator
from ottla.broker.handlers.heartbeat import Heartbeat
from ottla.broker.handlers.incremental_alter_configs import IncrementalAlterConfigs
from ottla.broker.handlers.init_producer_id import InitProducerId
from ottla.broker.handlers.initialize_share_group_state import InitializeShareGroupState
from ottla.broker.handlers.join_group import JoinGroup
from ottla.broker.handlers.leader_and_isr import LeaderAndIsr
from ottla.broker.handlers.leave_group import LeaveGroup
from ottla.broker.handlers.list_config_resources import ListConfigResources
from ottla.broker.handlers.list_groups import ListGroups
from ottla.broker.handlers.list_offsets import ListOffsets
from ottla.broker.handlers.list_partition_reassignments import ListPartitionReassignments
from ottla.broker.handlers.list_transactions import ListTransactions
from ottla.broker.handlers.log_ends import LogEnds
from ottla.broker.handlers.metadata import Metadata
from ottla.broker.handlers.offset_commit import OffsetCommit
from ottla.broker.handlers.offset_delete import OffsetDelete
from ottla.broker.handlers.offset_fetch import OffsetFetch
from ottla.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpoch
from ottla.broker.handlers.offset_ledger import OffsetLedger
from ottla.broker.handlers.produce import Produce
from ottla.broker.handlers.read_share_group_state import ReadShareGroupState
from ottla.broker.handlers.read_share_group_state_summary import ReadShareGroupStateSummary
from ottla.broker.handlers.renew_delegation_token import RenewDelegationToken
from ottla.broker.handlers.retention_standing import RetentionStanding
from ottla.broker.handlers.sasl_authenticate import SaslAuthenticate
from ottla.broker.handlers.sasl_handshake import SaslHandshake
from ottla.broker.handlers.share_acknowledge import ShareAcknowledge
from ottla.broker.handlers.share_fetch import ShareFetch
from ottla.broker.handlers.share_group_describe import ShareGroupDescribe
from ottla.broker.handlers.share_group_heartbeat import ShareGroupHeartbeat
from ottla.broker.handlers.stop_replica import StopReplica
from ottla.broker.handlers.sync_group import SyncGroup
from ottla.broker.handlers.txn_offset_commit import TxnOffsetCommit
from ottla.broker.handlers.unregister_broker import UnregisterBroker
from ottla.broker.handlers.update_features import UpdateFeatures
from ottla.broker.handlers.update_metadata import UpdateMetadata
from ottla.broker.handlers.write_share_group_state import WriteShareGroupState
from ottla.broker.handlers.write_txn_markers import WriteTxnMarkers
from ottla.broker.process.parts import Parts
from ottla.broker.requests.handler import Api, Handler
from ottla.broker.serving.table import api_ranges
from ottla.broker.share.end_offsets import EndOffsets


def handlers(parts: Parts) -> list[Handler]:
    """One object for each API that a broker serves."""
    most: list[Handler] = [
        AddOffsetsToTxn(parts.runtime, parts.groups, parts.transactions, parts.topics),
        AddPartitionsToTxn(parts.view, parts.transactions),
        AlterClientQuotas(parts.quotas.stored),
        AlterConfigs(parts.configs),
        AlterPartitionReassignments(parts.controller),
        AlterUserScramCredentials(parts.users),
        AlterReplicaLogDirs(parts.replication.moves),
        AlterShareGroupOffsets(parts.view, parts.groups, parts.share_group_state),
        BrokerHandshake(parts.admission, inter_broker_listener(parts.settings)),
        CompactLog(parts.partitions, parts.cleaner),
        ConsumerGroupDescribe(parts.view, parts.groups),
        ConsumerGroupHeartbeat(parts.view, parts.groups, parts.settings),
        ControlledShutdown(parts.controller),
        CreateDelegationToken(parts.tokens),
        CreatePartitions(parts.view, parts.topics),
        CreateTopics(parts.settings, parts.topics),
        DeleteGroups(parts.groups, parts.share_group_state),
        DeleteRecords(
            parts.view,
            parts.runtime,
            parts.partitions,
            parts.own_standing,
            parts.log_directories,
        ),
        DeleteShareGroupOffsets(parts.view, parts.groups, parts.share_group_state),
        DeleteShareGroupState(parts.persister),
        DeleteTopics(parts.view, parts.settings, parts.topics),
        DescribeCleaner(parts.cleaner),
        DescribeClientQuotas(parts.quotas.stored),
        DescribeCluster(parts.view, parts.store),
        DescribeConfigs(parts.configs),
        DescribeDecisions(parts.view, parts.decisions),
        DescribeDelegationToken(parts.tokens),
        DescribeGroups(parts.groups),
        DescribeLogDirs(
            parts.settings, parts.replication.moves, parts.filesystem, parts.log_directories
        ),
        DescribeProducers(parts.partitions),
        DescribeRebalances(parts.groups),
        DescribeShareGroupOffsets(
            parts.view,
            parts.groups,
            parts.persister,
            EndOffsets(parts.view, parts.partitions, parts.peers),
        ),
        DescribeTopicPartitions(parts.view, parts.settings),
        DescribeTransactions(parts.transactions),
        DescribeUserScramCredentials(parts.users),
        ElectLeaders(parts.controller),
        EndTxn(parts.transactions),
        ExpireDelegationToken(parts.tokens),
        Fetch(parts.fetch, parts.replication.sessions, parts.replica_selector),
        FindCoordinator(
            parts.view,
            parts.groups,
            parts.transactions,
            parts.share_states,
            parts.topics,
            parts.peers,
        ),
        Heartbeat(parts.groups),
        IncrementalAlterConfigs(parts.configs),
        InitProducerId(parts.runtime, parts.transactions, parts.producer_ids),
        InitializeShareGroupState(parts.persister),
        JoinGroup(parts.groups),
        LeaderAndIsr(parts.orders),
        LeaveGroup(parts.groups),
        ListConfigResources(parts.configs),
        ListGroups(parts.groups),
        ListOffsets(parts.partitions, parts.runtime),
        ListPartitionReassignments(parts.controller),
        ListTransactions(parts.runtime, parts.transactions),
        LogEnds(parts.orders),
        Metadata(
            parts.view,
            parts.runtime,
            parts.partitions,
            parts.settings,
            parts.topics,
            parts.peers,
            parts.departed,
        ),
        OffsetCommit(parts.view, parts.groups),
        OffsetDelete(parts.view, parts.groups),
        OffsetFetch(parts.view, parts.groups),
        OffsetForLeaderEpoch(parts.partitions),
        OffsetLedger(parts.view, parts.runtime, parts.partitions),
        Produce(
            parts.view,
            parts.runtime,
            parts.partitions,
            parts.settings,
            parts.new_leaders,
            parts.verifications,
            parts.produce.turns,
        ),
        ReadShareGroupState(parts.persister),
        ReadShareGroupStateSummary(parts.persister),
        RenewDelegationToken(parts.tokens),
        RetentionStanding(parts.view, parts.runtime, parts.partitions, parts.retention),
        SaslAuthenticate(),
        SaslHandshake(),
        ShareAcknowledge(parts.view, parts.sharing, parts.share_group_settings, parts.new_leaders),
        ShareFetch(
            parts.view,
            parts.runtime,
            parts.settings,
            parts.sharing,
            parts.share_group_settings,
            parts.new_leaders,
        ),
        ShareGroupDescribe(parts.view, parts.groups),
        ShareGroupHeartbeat(
            parts.view, parts.groups, parts.share_group_settings, parts.share_group_state
        ),
        StopReplica(parts.orders),
        SyncGroup(parts.groups),
        TxnOffsetCommit(parts.view, parts.groups, parts.verifications),
        UnregisterBroker(parts.store),
        UpdateFeatures(parts.features),
        UpdateMetadata(parts.orders),
        WriteShareGroupState(parts.persister),
        WriteTxnMarkers(parts.marker_writer),
        CreateAcls(parts.acls),
        DeleteAcls(parts.acls),
        DescribeAcls(parts.acls),
    ]
    ranges = api_ranges([*most, ApiVersions])
    return [*most, ApiVersions(parts.view, ranges)]


def served() -> dict[int, Api[Any, Any]]:
    """What each handler declares of its API, by key."""
    return {kind.api.key: kind.api for kind in Handler.__subclasses__()}
