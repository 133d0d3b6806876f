"""WriteTxnMarkers (27), versions 1-2: a coordinator sends the outcome of transactions.

Also sent by the tool that aborts hanging transactions (KIP-664). Version 2 says whether each
transaction of the producer has its own epoch: a late marker then cannot end the next transaction
(KIP-1228).
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions.marker_writer import MarkerWriter
from ottla.transaction.outcome import TransactionOutcome
from ottla.wire.api import ApiKey
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class WriteTxnMarkers(Handler):
    """Serves WriteTxnMarkers."""

    api = ApiKey.WRITE_TXN_MARKERS
    versions = Versions(1, 2)

    writer: MarkerWriter

    def handle(self, request: RequestContext, body: WriteTxnMarkersRequest) -> None:
        """Write the markers, and answer when all are committed."""
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

    @staticmethod
    def on_error(
        body: WriteTxnMarkersRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> WriteTxnMarkersResponse:
        """The same for all partitions."""
        return WriteTxnMarkersResponse(
            markers=[
                _result(marker, dict.fromkeys(_partitions(marker), code)) for marker in body.markers
            ]
        )


def _put(
    parted: PartedResponse,
    index: int,
    marker: WritableTxnMarker,
    codes: dict[TopicPartition, ErrorCode],
) -> None:
    parted.put(index, _result(marker, codes))


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    """The marker's partitions in the order of the request, each once."""
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
