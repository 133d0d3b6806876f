"""The APIs that a broker serves: one handler for each, built from the broker's parts."""

from typing import Any

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.fetch.parts import FetchParts
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
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.requests.handler import Api, Handler
from ottla.broker.serving.table import api_ranges
from ottla.broker.share.end_offsets import EndOffsets


def handlers(
    settings: BrokerSettings,
    parts: Parts,
    produce: ProduceParts,
    fetch: FetchParts,
) -> list[Handler]:
    """Return one handler for each API that a broker serves."""
    cluster, replication, controller = parts.cluster, parts.replication, parts.controller
    groups, transactions, share, metadata = (
        parts.groups,
        parts.transactions,
        parts.share,
        parts.metadata,
    )
    view, runtime, partitions = cluster.view, parts.runtime, replication.partitions
    most: list[Handler] = [
        AddOffsetsToTxn(runtime, groups, transactions.coordinator, metadata.topics),
        AddPartitionsToTxn(view, transactions.coordinator),
        AlterClientQuotas(parts.quotas.stored),
        AlterConfigs(parts.configs.configs),
        AlterPartitionReassignments(controller),
        AlterUserScramCredentials(parts.login.users),
        AlterReplicaLogDirs(replication.moves),
        AlterShareGroupOffsets(view, groups, share.group_state),
        BrokerHandshake(cluster.admission, inter_broker_listener(settings)),
        CompactLog(partitions, parts.cleaner),
        ConsumerGroupDescribe(view, groups),
        ConsumerGroupHeartbeat(view, groups, settings),
        ControlledShutdown(controller),
        CreateDelegationToken(parts.login.tokens),
        CreatePartitions(view, metadata.topics),
        CreateTopics(settings, metadata.topics),
        DeleteGroups(groups, share.group_state),
        DeleteRecords(
            view,
            runtime,
            partitions,
            replication.own,
            replication.directories,
        ),
        DeleteShareGroupOffsets(view, groups, share.group_state),
        DeleteShareGroupState(share.persister),
        DeleteTopics(view, settings, metadata.topics),
        DescribeCleaner(parts.cleaner),
        DescribeClientQuotas(parts.quotas.stored),
        DescribeCluster(view, cluster.store),
        DescribeConfigs(parts.configs.configs),
        DescribeDecisions(view, controller.decisions),
        DescribeDelegationToken(parts.login.tokens),
        DescribeGroups(groups),
        DescribeLogDirs(
            settings, replication.moves, replication.directories.filesystem, replication.directories
        ),
        DescribeProducers(partitions),
        DescribeRebalances(groups),
        DescribeShareGroupOffsets(
            view,
            groups,
            share.persister,
            EndOffsets(view, partitions, cluster.peers),
        ),
        DescribeTopicPartitions(view, settings),
        DescribeTransactions(transactions.coordinator),
        DescribeUserScramCredentials(parts.login.users),
        ElectLeaders(controller),
        EndTxn(transactions.coordinator),
        ExpireDelegationToken(parts.login.tokens),
        Fetch(fetch, replication.sessions, replication.selector),
        FindCoordinator(
            view,
            groups,
            transactions.coordinator,
            share.states,
            metadata.topics,
            cluster.peers,
        ),
        Heartbeat(groups),
        IncrementalAlterConfigs(parts.configs.configs),
        InitProducerId(runtime, transactions.coordinator, transactions.producer_ids),
        InitializeShareGroupState(share.persister),
        JoinGroup(groups),
        LeaderAndIsr(metadata.orders),
        LeaveGroup(groups),
        ListConfigResources(parts.configs.configs),
        ListGroups(groups),
        ListOffsets(partitions, runtime),
        ListPartitionReassignments(controller),
        ListTransactions(runtime, transactions.coordinator),
        LogEnds(metadata.orders),
        Metadata(
            view,
            runtime,
            partitions,
            settings,
            metadata.topics,
            cluster.peers,
            cluster.departed,
        ),
        OffsetCommit(view, groups),
        OffsetDelete(view, groups),
        OffsetFetch(view, groups),
        OffsetForLeaderEpoch(partitions),
        OffsetLedger(view, runtime, partitions),
        Produce(
            view,
            runtime,
            partitions,
            settings,
            metadata.new_leaders,
            transactions.verifications,
            produce.turns,
        ),
        ReadShareGroupState(share.persister),
        ReadShareGroupStateSummary(share.persister),
        RenewDelegationToken(parts.login.tokens),
        RetentionStanding(view, runtime, partitions, parts.retention),
        SaslAuthenticate(),
        SaslHandshake(),
        ShareAcknowledge(view, share.sharing, share.group_settings, metadata.new_leaders),
        ShareFetch(
            view,
            runtime,
            settings,
            share.sharing,
            share.group_settings,
            metadata.new_leaders,
        ),
        ShareGroupDescribe(view, groups),
        ShareGroupHeartbeat(view, groups, share.group_settings, share.group_state),
        StopReplica(metadata.orders),
        SyncGroup(groups),
        TxnOffsetCommit(view, groups, transactions.verifications),
        UnregisterBroker(cluster.store),
        UpdateFeatures(parts.configs.features),
        UpdateMetadata(metadata.orders),
        WriteShareGroupState(share.persister),
        WriteTxnMarkers(transactions.marker_writer),
        CreateAcls(parts.access.acls),
        DeleteAcls(parts.access.acls),
        DescribeAcls(parts.access.acls),
    ]
    ranges = api_ranges([*most, ApiVersions])
    return [*most, ApiVersions(view, ranges)]


def served() -> dict[int, Api[Any, Any]]:
    """Return the declarations of all handlers, by key."""
    return {kind.api.key: kind.api for kind in Handler.__subclasses__()}
