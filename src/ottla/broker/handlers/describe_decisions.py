"""DescribeDecisions (1001), version 0: what this broker decided about a partition, and why.

Ottla's own, and advertised to Ottla's own clients only. `ottla why` asks all brokers.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.metadata.decisions import Decision
from ottla.wire.api import ApiKey
from ottla.wire.messages.describe_decisions import (
    DescribedDecision,
    DescribeDecisionsRequest,
    DescribeDecisionsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", _request: RequestContext, body: DescribeDecisionsRequest
) -> DescribeDecisionsResponse:
    """Answer from memory; it is bounded, and so is the answer."""
    name = TopicPartition(body.topic, body.partition)
    if broker.image.partition(*name) is None:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this broker knows of no partition {name}"
        )
    return DescribeDecisionsResponse(
        decisions=[
            _described(decision)
            for decision in broker.decisions.of(name)
            if body.kinds is None or decision.kind in body.kinds
        ]
    )


def _described(decision: Decision) -> DescribedDecision:
    return DescribedDecision(
        kind=decision.kind,
        broker_id=decision.broker_id,
        leader_epoch=decision.leader_epoch,
        cause=decision.cause,
        evidence=decision.evidence,
        setting=decision.setting,
        at_ms=decision.at_ms,
    )


def on_error(
    _body: DescribeDecisionsRequest, code: ErrorCode, message: str | None, _version: int
) -> DescribeDecisionsResponse:
    """The error for the whole."""
    return DescribeDecisionsResponse(error_code=code, error_message=message)


HANDLER = LegacyHandler(ApiKey.DESCRIBE_DECISIONS, 0, 0, handle)
