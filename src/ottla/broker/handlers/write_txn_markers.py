"""WriteTxnMarkers (27), versions 1-2: a coordinator writes the outcome of transactions.

Also sent by the tool that aborts hanging transactions (KIP-664). Version 2 says whether each
transaction of the producer has its own epoch: then a late marker cannot end the next transaction
(KIP-1228).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.audit.details import partition_changes
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions.marker_writer import MarkerWriter
from ottla.security.names import AclOperation
from ottla.transaction.outcome import TransactionOutcome
from ottla.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def _needs(check: RequestCheck[WriteTxnMarkersRequest]) -> None:
    """Require ALTER (for `kafka-transactions abort`) or CLUSTER_ACTION on the cluster."""
    if not check.sees_cluster(AclOperation.ALTER):
        check.require_cluster(AclOperation.CLUSTER_ACTION)


def _changes(
    body: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic of each producer; markers of brokers are not audited."""
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
    """Serves WriteTxnMarkers."""

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
        """Write the markers, and answer when all of them are committed."""
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
    """Return the marker's partitions in the order of the request, each once."""
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
