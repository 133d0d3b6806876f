"""DescribeDecisions (1001), version 0: explains this broker's decisions about a partition.

An API of Ottla, advertised to Ottla's clients only. `ottla why` asks all brokers.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.decisions import Decision, Decisions
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.decisions import (
    DescribedDecision,
    DescribeDecisionsRequest,
    DescribeDecisionsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeDecisions(Handler):
    """Serves DescribeDecisions."""

    api = Api(
        DescribeDecisionsRequest,
        DescribeDecisionsResponse,
        Versions(0, 0),
        needs=resource(AclOperation.DESCRIBE, AclResource.TOPIC, lambda body: body.topic),
    )

    view: ClusterView
    decisions: Decisions

    def handle(
        self, _request: RequestContext, body: DescribeDecisionsRequest
    ) -> DescribeDecisionsResponse:
        """Answer from the bounded history in memory, so the answer is bounded, too."""
        name = TopicPartition(body.topic, body.partition)
        if self.view.image.partition(*name) is None:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this broker knows of no partition {name}"
            )
        return DescribeDecisionsResponse(
            decisions=[
                _described(decision)
                for decision in self.decisions.of(name)
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
