"""WriteTxnMarkers (27), versions 1-2: a coordinator has the outcome of transactions written.

Also sent by the tool that aborts hanging transactions (KIP-664). 2 tells whether each transaction
of the producer has an epoch of its own, so that a late marker cannot end the next one (KIP-1228).
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.groups.answer import Gathering
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions.marker_writing import Outcome, write_markers
from ottla.wire.api import ApiKey
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


@dataclass(frozen=True, slots=True)
class WriteTxnMarkers(Handler):
    """Serves WriteTxnMarkers."""

    api = ApiKey.WRITE_TXN_MARKERS
    versions = Versions(1, 2)

    broker: "Broker"

    def handle(self, request: RequestContext, body: WriteTxnMarkersRequest) -> None:
        """Write them, and answer when all are committed."""
        gathering = Gathering(
            request, len(body.markers), lambda parts: WriteTxnMarkersResponse(markers=parts)
        )
        for index, marker in enumerate(body.markers):
            outcome = Outcome(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            )
            write_markers(
                self.broker, outcome, _partitions(marker), partial(_put, gathering, index, marker)
            )

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
    gathering: Gathering,
    index: int,
    marker: WritableTxnMarker,
    codes: dict[TopicPartition, ErrorCode],
) -> None:
    gathering.put(index, _result(marker, codes))


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    """In the order asked, each once."""
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
