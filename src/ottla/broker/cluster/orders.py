"""Carries out the controller's requests to this broker.

Handlers call `Orders` for requests that come over the wire, `Control` for requests of a controller
in this process. Requests of an earlier controller fail with STALE_CONTROLLER_EPOCH, requests to an
earlier registration of this broker with STALE_BROKER_EPOCH (KIP-380).
"""

from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, BrokerId, TopicId, broker_ids
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.cluster.peers import Peers
from ottla.broker.partitions.partitions import Partitions, StopOrder
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.image import BrokerImage, PartitionImage, TopicImage
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ottla.wire.messages.offset_ledger import (
    LogEnd,
    LogEndsPartition,
    LogEndsRequest,
    LogEndsResponse,
    LogEndsTopic,
    LogEndsTopicResult,
)
from ottla.wire.notation import Message


class Orders:
    """Carries out the controller's requests. Every method raises OttlaError for a stale request."""

    def __init__(
        self,
        view: ClusterView,
        fence: ControllerFence,
        partitions: Partitions,
        updates: MetadataUpdates,
    ) -> None:
        self._view = view
        self._fence = fence
        self._partitions = partitions
        self._updates = updates

    async def update_metadata(self, body: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Apply the controller's metadata."""
        await self._updates.apply(body)
        return UpdateMetadataResponse()

    async def leader_and_isr(self, body: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Open partitions that are not open yet, and give them roles; the response has the errors.

        A state older than the current one is skipped without an error.
        """
        self._fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
        states: list[tuple[TopicImage, int, PartitionImage]] = []
        for topic in body.topic_states:
            image = self._topic(topic)
            states += [(image, s.partition_index, _state(s)) for s in topic.partition_states]
        failed = await self._partitions.order(states)
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrPartitionError(
                            partition_index=state.partition_index,
                            error_code=_code(failed.get((topic.topic_name, state.partition_index))),
                        )
                        for state in topic.partition_states
                    ],
                )
                for topic in body.topic_states
            ]
        )

    async def stop_replica(self, body: StopReplicaRequest) -> StopReplicaResponse:
        """Stop partitions, and delete their logs if requested; each partition has its own error.

        Each partition is also fenced by its leader epoch (KIP-570). Stopping an unknown partition
        succeeds.
        """
        self._fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
        orders = [
            StopOrder(
                topic.topic_name,
                state.partition_index,
                state.leader_epoch,
                state.delete_partition,
                None if topic.topic_id == NO_TOPIC_ID else topic.topic_id,
            )
            for topic in body.topic_states
            for state in topic.partition_states
        ]
        failed = await self._partitions.stop(orders)
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(
                    topic_name=order.topic,
                    partition_index=order.partition_index,
                    error_code=_code(failed.get((order.topic, order.partition_index))),
                    kept_bytes=self._partitions.kept_bytes(order),
                )
                for order in orders
            ]
        )

    def log_ends(self, body: LogEndsRequest) -> LogEndsResponse:
        """Return the log end offsets of partitions without a leader.

        A replica answers only if it is in the requested leader epoch. Its log then does not change
        until a leader is elected.
        """
        self._fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
        return LogEndsResponse(
            topics=[
                LogEndsTopicResult(
                    topic_name=topic.topic_name,
                    partitions=[self._end(topic, wanted) for wanted in topic.partitions],
                )
                for topic in body.topics
            ]
        )

    def _topic(self, ordered: LeaderAndIsrTopicState) -> TopicImage:
        """Return the topic in the image; a new topic gets its settings with the next image."""
        known = self._view.image.topic_by_id(TopicId(ordered.topic_id))
        return known or TopicImage(ordered.topic_name, TopicId(ordered.topic_id), ())

    def _end(self, topic: LogEndsTopic, wanted: LogEndsPartition) -> LogEnd:
        partition = self._partitions.find(topic.topic_name, wanted.partition_index)
        answer = LogEnd(partition_index=wanted.partition_index)
        if partition is None or partition.topic_id != topic.topic_id:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif partition.failure is not None:
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        elif partition.leader_epoch != wanted.leader_epoch:
            older = partition.leader_epoch < wanted.leader_epoch
            answer.error_code = (
                ErrorCode.UNKNOWN_LEADER_EPOCH if older else ErrorCode.FENCED_LEADER_EPOCH
            )
        else:
            answer.latest_epoch = partition.log.leader_epochs.latest
            answer.end_offset = partition.log_end_offset
            answer.start_offset = partition.log.log_start_offset
        return answer


def _state(ordered: LeaderAndIsrPartitionState) -> PartitionImage:
    return PartitionImage(
        leader=BrokerId(ordered.leader),
        leader_epoch=ordered.leader_epoch,
        replicas=broker_ids(ordered.replicas),
        isr=broker_ids(ordered.isr),
        version=ordered.partition_epoch,
        elr=broker_ids(ordered.elr),
        last_known_elr=broker_ids(ordered.last_known_elr),
        nonce=ordered.nonce,
        adding=broker_ids(ordered.adding_replicas),
        removing=broker_ids(ordered.removing_replicas),
        leader_broker_epoch=ordered.leader_broker_epoch,
        unclean_epoch=ordered.unclean_epoch,
    )


def _code(error: OttlaError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


class Control:
    """Sends the controller's requests to other brokers, or carries them out in this process."""

    def __init__(self, broker_id: BrokerId, peers: Peers, orders: Orders) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self._orders = orders

    async def deliver(self, receiver: BrokerImage, message: Message) -> Any:
        """Send a message and return its response. Raises OttlaError."""
        if receiver.id == self._broker_id:
            return await self._apply(message)
        return await self._peers.request(receiver.id, message)

    async def answers(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether a broker answers, over a connection of its own; see `Peers.answers`."""
        if receiver.id == self._broker_id:
            return True
        return await self._peers.answers(receiver, within_s)

    async def reaches(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether a connection to a broker can be opened; see `Peers.reaches`."""
        if receiver.id == self._broker_id:
            return True
        return await self._peers.reaches(receiver, within_s)

    async def _apply(self, message: Message) -> Message:
        """Carry out a controller request in this process."""
        match message:
            case UpdateMetadataRequest():
                return await self._orders.update_metadata(message)
            case LeaderAndIsrRequest():
                return await self._orders.leader_and_isr(message)
            case StopReplicaRequest():
                return await self._orders.stop_replica(message)
            case LogEndsRequest():
                return self._orders.log_ends(message)
        raise AssertionError(f"the controller does not send {type(message).__name__}")
