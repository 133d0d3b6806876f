"""The handlers of requests between brokers: the handshake, and the controller's requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.audit.details import partition_changes
from ottla.broker.cluster.admission import Admission, require_broker
from ottla.broker.cluster.orders import Orders
from ottla.broker.controller import Controller
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only, free
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions.marker_sender import MarkerWriter
from ottla.security.names import AclOperation
from ottla.transaction.transaction import TransactionOutcome
from ottla.wire.messages.between_brokers import (
    BrokerHandshakeRequest,
    BrokerHandshakeResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    RemainingPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ottla.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class BrokerHandshake(Handler):
    """BrokerHandshake (1000), version 0: another broker proves that it belongs to this cluster.

    Each new connection between brokers begins with two of these requests;
    `broker/cluster/handshake.py` explains the proof. The API is not advertised, and is served only
    on the listener for connections between brokers.
    """

    api = Api(
        BrokerHandshakeRequest,
        BrokerHandshakeResponse,
        Versions(0, 0),
        needs=free,
        makes_proven=True,
    )

    admission: Admission
    inter_broker_listener: str

    def handle(
        self, request: RequestContext, body: BrokerHandshakeRequest
    ) -> BrokerHandshakeResponse:
        """Answer one of the two handshake requests."""
        if request.listener != self.inter_broker_listener:
            raise OttlaError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"brokers meet on the listener {self.inter_broker_listener}, and this is "
                f"{request.listener}; set inter.broker.listener.name alike on all brokers",
            )
        return self.admission.on_handshake(request.connection, body)


@dataclass(slots=True, eq=False, repr=False)
class LeaderAndIsr(Handler):
    """LeaderAndIsr (4): the controller makes this broker leader or follower of partitions.

    Between brokers only; see `cluster.orders`.
    """

    api = Api(LeaderAndIsrRequest, LeaderAndIsrResponse, Versions(7, 7), needs=brokers_only)

    orders: Orders

    async def handle(
        self, _request: RequestContext, body: LeaderAndIsrRequest
    ) -> LeaderAndIsrResponse:
        """Become leader or follower as requested."""
        return await self.orders.leader_and_isr(body)


@dataclass(slots=True, eq=False, repr=False)
class StopReplica(Handler):
    """StopReplica (5), versions 3-4: the controller makes this broker stop replicas.

    Between brokers only. With `delete_partition` the log is deleted, too; see `cluster.orders`.
    """

    api = Api(StopReplicaRequest, StopReplicaResponse, Versions(3, 4), needs=brokers_only)

    orders: Orders

    async def handle(
        self, _request: RequestContext, body: StopReplicaRequest
    ) -> StopReplicaResponse:
        """Stop the replicas."""
        return await self.orders.stop_replica(body)


@dataclass(slots=True, eq=False, repr=False)
class UpdateMetadata(Handler):
    """UpdateMetadata (6), versions 5-8: the controller sends the live brokers, topics and leaders.

    Between brokers only. This request is the only one that changes the image that clients see; see
    `cluster.orders`.
    """

    api = Api(UpdateMetadataRequest, UpdateMetadataResponse, Versions(5, 8), needs=brokers_only)

    orders: Orders

    async def handle(
        self, request: RequestContext, body: UpdateMetadataRequest
    ) -> UpdateMetadataResponse:
        """Apply the whole update, or refuse it."""
        require_broker(request, "UpdateMetadata", body.controller_id)
        return await self.orders.update_metadata(body)


@dataclass(slots=True, eq=False, repr=False)
class ControlledShutdown(Handler):
    """ControlledShutdown (7), versions 2-3: moves leadership away from a stopping broker.

    Between brokers only. The answer names the partitions whose leader could not be moved. The
    stopping broker may then send the request again, or stop anyway.
    """

    api = Api(
        ControlledShutdownRequest, ControlledShutdownResponse, Versions(2, 3), needs=brokers_only
    )

    controller: Controller

    async def handle(
        self, request: RequestContext, body: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leadership away from the sender, first in the store and then on the brokers."""
        require_broker(request, "ControlledShutdown", body.broker_id)
        remaining = await self.controller.shut_down(BrokerId(body.broker_id), body.broker_epoch)
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=name.topic, partition_index=name.partition)
                for name in remaining
            ]
        )


def _needs(check: RequestCheck[WriteTxnMarkersRequest]) -> None:
    """Require ALTER (for `kafka-transactions abort`) or CLUSTER_ACTION on the cluster."""
    if not check.sees_cluster(AclOperation.ALTER):
        check.require_cluster(AclOperation.CLUSTER_ACTION)


def _changes(
    body: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic of each producer; brokers' markers are not audited."""
    answered = {one.producer_id: one.topics for one in response.markers}
    for marker in body.markers:
        yield from partition_changes(
            cluster_need(AclOperation.ALTER),
            ((one.name, index, None) for one in marker.topics for index in one.partition_indexes),
            (
                (one.name, part.partition_index, part.error_code)
                for one in answered.get(marker.producer_id, [])
                for part in one.partitions
            ),
            detail={
                "producer_id": marker.producer_id,
                "producer_epoch": marker.producer_epoch,
                "marker": "commit" if marker.transaction_result else "abort",
            },
        )


@dataclass(slots=True, eq=False, repr=False)
class WriteTxnMarkers(Handler):
    """WriteTxnMarkers (27), versions 1-2: a coordinator writes the outcome of transactions.

    The tool that aborts hanging transactions also sends it (KIP-664). Version 2 says whether each
    transaction of the producer has its own epoch; then a late marker cannot end the next
    transaction (KIP-1228).
    """

    api = Api(
        WriteTxnMarkersRequest,
        WriteTxnMarkersResponse,
        Versions(1, 2),
        needs=_needs,
        changes=_changes,
        portions=in_portions(
            lambda body: body.markers,
            lambda response: response.markers,
            lambda marker: marker.producer_id,
            inner=items(
                lambda marker: marker.topics,
                lambda marker: marker.topics,
                lambda topic: topic.name,
                inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
            ),
        ),
        # Clients abort one transaction at a time. More elements would slow down garbage collection.
        fewer_elements_max=60_000,
        on_error=lambda body, code, _message: WriteTxnMarkersResponse(
            markers=[
                _result(marker, dict.fromkeys(_partitions(marker), code)) for marker in body.markers
            ]
        ),
    )

    writer: MarkerWriter

    def handle(self, request: RequestContext, body: WriteTxnMarkersRequest) -> None:
        """Write the markers; the answer is sent when all of them are committed."""
        parted = PartedResponse(
            request, len(body.markers), lambda parts: WriteTxnMarkersResponse(markers=parts)
        )
        for index, marker in enumerate(body.markers):
            outcome = TransactionOutcome(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            )
            self.writer.write(outcome, _partitions(marker), partial(_put, parted, index, marker))


def _put(
    parted: PartedResponse,
    index: int,
    marker: WritableTxnMarker,
    codes: dict[TopicPartition, ErrorCode],
) -> None:
    parted.put(index, _result(marker, codes))


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    """Return the partitions of the marker in the order of the request, without repetitions."""
    return list(
        dict.fromkeys(
            TopicPartition(topic.name, index)
            for topic in marker.topics
            for index in topic.partition_indexes
        )
    )


def _result(
    marker: WritableTxnMarker, codes: dict[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
