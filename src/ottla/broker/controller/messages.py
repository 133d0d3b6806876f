"""Builds the controller's requests to brokers from its current context."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ottla.base.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from ottla.broker.controller.context import Context
from ottla.metadata.image import (
    NO_LEADER,
    PROTOCOL_NUMBERS,
    BrokerImage,
    PartitionImage,
    TopicImage,
)
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.messages.offset_ledger import LogEndsPartition, LogEndsRequest, LogEndsTopic

# The leader that UpdateMetadata names for a partition whose topic is being deleted.
LEADER_DURING_DELETE = BrokerId(-2)
# The request types of LeaderAndIsr and UpdateMetadata, as defined in their messages.
_ALL_STATES, _SOME_STATES = 1, 0
_ALL_METADATA, _SOME_METADATA = 2, 1
_NO_IDS: Mapping[str, TopicId] = MappingProxyType({})


class ControllerMessages:
    """The requests of one controller epoch; each request carries that epoch."""

    def __init__(self, controller_id: BrokerId, controller_epoch: int) -> None:
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch

    def leader_and_isr(
        self,
        context: Context,
        receiver: BrokerImage,
        names: Iterable[TopicPartition],
        *,
        full: bool,
    ) -> LeaderAndIsrRequest:
        """Build a LeaderAndIsr with the states of those `names` that `receiver` hosts."""
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: dict[BrokerId, None] = {}
        for name in names:
            partition = context.partition(name)
            if partition is None or receiver.id not in partition.replicas:
                continue
            topic = topics.get(name.topic)
            if topic is None:
                topic = topics[name.topic] = LeaderAndIsrTopicState(
                    topic_name=name.topic, topic_id=context.topics[name.topic].id
                )
            topic.partition_states.append(self._state(name.partition, partition))
            leaders[partition.leader] = None
        return LeaderAndIsrRequest(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            broker_epoch=receiver.epoch,
            type=_ALL_STATES if full else _SOME_STATES,
            topic_states=list(topics.values()),
            live_leaders=_live_leaders(context, leaders),
        )

    def stop_replica(
        self,
        receiver: BrokerImage,
        stops: Mapping[TopicPartition, int],
        *,
        delete: bool,
        topic_ids: Mapping[str, TopicId] = _NO_IDS,
    ) -> StopReplicaRequest:
        """Build a StopReplica for the partitions in `stops`, which maps them to leader epochs.

        With `delete` the logs of the replicas are deleted, too; those of deleted topics, which are
        in `topic_ids`, may go to the trash.
        """
        topics: dict[str, StopReplicaTopicState] = {}
        for name, leader_epoch in stops.items():
            topic = topics.get(name.topic)
            if topic is None:
                topic = topics[name.topic] = StopReplicaTopicState(
                    topic_name=name.topic, topic_id=topic_ids.get(name.topic, NO_TOPIC_ID)
                )
            topic.partition_states.append(
                StopReplicaPartitionState(
                    partition_index=name.partition,
                    leader_epoch=leader_epoch,
                    delete_partition=delete,
                )
            )
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            broker_epoch=receiver.epoch,
            topic_states=list(topics.values()),
        )

    def log_ends(
        self, context: Context, receiver: BrokerImage, names: Iterable[TopicPartition]
    ) -> LogEndsRequest:
        """Build a LogEnds request for the partitions in `names`, with their leader epochs."""
        topics: dict[str, LogEndsTopic] = {}
        for name in names:
            partition = context.partition(name)
            if partition is None:
                continue
            topic = topics.get(name.topic)
            if topic is None:
                topic = topics[name.topic] = LogEndsTopic(
                    topic_name=name.topic, topic_id=context.topics[name.topic].id
                )
            topic.partitions.append(
                LogEndsPartition(
                    partition_index=name.partition, leader_epoch=partition.leader_epoch
                )
            )
        return LogEndsRequest(
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            broker_epoch=receiver.epoch,
            topics=list(topics.values()),
        )

    def update_metadata(
        self,
        context: Context,
        receiver: BrokerImage,
        names: Iterable[TopicPartition],
        deleted: Sequence[TopicImage],
        *,
        full: bool,
    ) -> UpdateMetadataRequest:
        """Build an UpdateMetadata with the live brokers, states of `names`, `deleted` topics."""
        live = context.live
        topics: dict[TopicId, UpdateMetadataTopicState] = {}
        for name in names:
            partition = context.partition(name)
            if partition is None:
                continue
            known = context.topics[name.topic]
            topic = topics.get(known.id)
            if topic is None:
                topic = topics[known.id] = _topic(known)
            topic.partition_states.append(
                self._metadata(name.partition, partition, partition.leader, live)
            )
        for gone in deleted:
            topic = topics[gone.id] = _topic(gone)
            topic.partition_states += [
                self._metadata(index, partition, LEADER_DURING_DELETE, live)
                for index, partition in enumerate(gone.partitions)
            ]
        return UpdateMetadataRequest(
            controller_id=self.controller_id,
            type=_ALL_METADATA if full else _SOME_METADATA,
            controller_epoch=self.controller_epoch,
            broker_epoch=receiver.epoch,
            topic_states=list(topics.values()),
            live_brokers=[_broker(context.brokers[broker]) for broker in live],
        )

    def _state(self, index: int, partition: PartitionImage) -> LeaderAndIsrPartitionState:
        return LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=self.controller_epoch,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            partition_epoch=partition.version,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding),
            removing_replicas=list(partition.removing),
            is_new=partition.version == 0,
            elr=list(partition.elr),
            last_known_elr=list(partition.last_known_elr),
            nonce=partition.nonce,
            leader_broker_epoch=partition.leader_broker_epoch,
            unclean_epoch=partition.unclean_epoch,
        )

    def _metadata(
        self, index: int, partition: PartitionImage, leader: BrokerId, live: Mapping[BrokerId, int]
    ) -> UpdateMetadataPartitionState:
        return UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=self.controller_epoch,
            leader=leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            zk_version=partition.version,
            replicas=list(partition.replicas),
            offline_replicas=[broker for broker in partition.replicas if broker not in live],
            elr=list(partition.elr),
            last_known_elr=list(partition.last_known_elr),
        )


def _topic(topic: TopicImage) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(topic_name=topic.name, topic_id=topic.id)


def _broker(broker: BrokerImage) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(
            host=endpoint.host,
            port=endpoint.port,
            listener=name,
            security_protocol=PROTOCOL_NUMBERS[endpoint.protocol],
        )
        for name, endpoint in broker.endpoints.items()
    ]
    return UpdateMetadataBroker(
        id=broker.id, endpoints=endpoints, rack=broker.rack, epoch=broker.epoch
    )


def _live_leaders(context: Context, leaders: Iterable[BrokerId]) -> list[LeaderAndIsrLiveLeader]:
    found: list[LeaderAndIsrLiveLeader] = []
    for leader in leaders:
        broker = context.brokers.get(leader)
        if leader == NO_LEADER or broker is None or not broker.endpoints:
            continue
        endpoint = next(iter(broker.endpoints.values()))
        found.append(
            LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port)
        )
    return found
