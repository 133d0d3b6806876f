"""The APIs that a broker serves: one handler for each, built from the broker's parts."""

from collections.abc import Iterator
from typing import Any

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.groups.rewinds import Rewinds
from ottla.broker.handlers.acls import CreateAcls, DeleteAcls, DescribeAcls
from ottla.broker.handlers.api_versions import ApiVersions
from ottla.broker.handlers.between_brokers import (
    BrokerHandshake,
    ControlledShutdown,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
    WriteTxnMarkers,
)
from ottla.broker.handlers.classic_membership import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from ottla.broker.handlers.client_quotas import AlterClientQuotas, DescribeClientQuotas
from ottla.broker.handlers.client_use import ClientDelays, ClientUsage
from ottla.broker.handlers.cluster import DescribeCluster, UnregisterBroker, UpdateFeatures
from ottla.broker.handlers.configs import (
    AlterConfigs,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ListConfigResources,
)
from ottla.broker.handlers.consumer_groups import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    ShareGroupDescribe,
    ShareGroupHeartbeat,
)
from ottla.broker.handlers.create_topics import CreatePartitions, CreateTopics
from ottla.broker.handlers.decisions import DescribeDecisions, DescribeRebalances
from ottla.broker.handlers.delegation_tokens import (
    CreateDelegationToken,
    DescribeDelegationToken,
    ExpireDelegationToken,
    RenewDelegationToken,
)
from ottla.broker.handlers.deletions import DeleteRecords, DeleteTopics
from ottla.broker.handlers.describe_topic_partitions import DescribeTopicPartitions
from ottla.broker.handlers.fetch import Fetch
from ottla.broker.handlers.find_coordinator import FindCoordinator
from ottla.broker.handlers.group_offsets import OffsetCommit, OffsetDelete, TxnOffsetCommit
from ottla.broker.handlers.groups import DeleteGroups, DescribeGroups, ListGroups
from ottla.broker.handlers.list_offsets import ListOffsets, OffsetForLeaderEpoch
from ottla.broker.handlers.log_cleaning import (
    CompactLog,
    DescribeCleaner,
    ReaderLag,
    RetentionStanding,
)
from ottla.broker.handlers.log_dirs import AlterReplicaLogDirs, DescribeLogDirs
from ottla.broker.handlers.metadata import Metadata
from ottla.broker.handlers.offset_fetch import OffsetFetch
from ottla.broker.handlers.offset_ledger import LogEnds, OffsetLedger
from ottla.broker.handlers.produce import Produce
from ottla.broker.handlers.reassignments import (
    AlterPartitionReassignments,
    ElectLeaders,
    ListPartitionReassignments,
)
from ottla.broker.handlers.sasl import SaslAuthenticate, SaslHandshake
from ottla.broker.handlers.share_group_offsets import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroupOffsets,
)
from ottla.broker.handlers.share_group_state import (
    DeleteShareGroupState,
    InitializeShareGroupState,
    ReadShareGroupState,
    ReadShareGroupStateSummary,
    WriteShareGroupState,
)
from ottla.broker.handlers.share_records import ShareAcknowledge, ShareFetch
from ottla.broker.handlers.transaction_listings import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
)
from ottla.broker.handlers.transactions import (
    AddOffsetsToTxn,
    AddPartitionsToTxn,
    EndTxn,
    InitProducerId,
)
from ottla.broker.handlers.undo import DescribeUndo, RestoreTopic
from ottla.broker.handlers.user_scram_credentials import (
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
)
from ottla.broker.process.parts import Parts
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.requests.handler import Api, Handler
from ottla.broker.serving.table import api_ranges
from ottla.broker.share.persister import EndOffsets


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
    changes = parts.configs.configs.changes
    rewinds = Rewinds(changes, runtime.spawn)
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
        ClientDelays(parts.usage),
        ClientUsage(parts.usage),
        CompactLog(partitions, parts.cleaner),
        ConsumerGroupDescribe(view, groups),
        ConsumerGroupHeartbeat(view, groups, settings),
        ControlledShutdown(controller),
        CreateDelegationToken(parts.login.tokens),
        CreatePartitions(view, metadata.topics),
        CreateTopics(settings, metadata.topics),
        DeleteGroups(groups, share.group_state, rewinds),
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
        DescribeCleaner(parts.cleaner, parts.runtime.clock),
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
        DescribeUndo(changes, parts.trash),
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
        OffsetCommit(view, groups, rewinds),
        OffsetDelete(view, groups, rewinds),
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
        ReaderLag(runtime, partitions, parts.lags.places),
        ReadShareGroupStateSummary(share.persister),
        RenewDelegationToken(parts.login.tokens),
        RestoreTopic(metadata.topics),
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
    return {kind.api.key: kind.api for kind in _subclasses(Handler) if "api" in vars(kind)}


def _subclasses(kind: type[Any]) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
