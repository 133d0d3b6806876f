"""The handlers that explain a broker's recent decisions, and the rebalances of a group."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.groups import Groups
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.group.coordinator.flights import Flight
from ottla.group.values.notes import GroupEvent, MemberIdentity
from ottla.metadata.decisions import Decision, Decisions
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.decisions import (
    DescribedDecision,
    DescribeDecisionsRequest,
    DescribeDecisionsResponse,
    DescribedRebalance,
    DescribeRebalancesRequest,
    DescribeRebalancesResponse,
    MemberWait,
    RebalanceCause,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeDecisions(Handler):
    """DescribeDecisions (1001), version 0: explains this broker's decisions about a partition.

    An API of Ottla, advertised to Ottla's clients only. `ottla why` asks all brokers.
    """

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
        """Answer from the history in memory, whose limited size also limits the answer."""
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


_UNKNOWN_MEMBER = MemberIdentity("")


@dataclass(slots=True, eq=False, repr=False)
class DescribeRebalances(Handler):
    """DescribeRebalances (1004): explains why a group rebalanced here, and how long it took.

    An API of Ottla, advertised to Ottla's clients only. `ottla why rebalance` asks all brokers.
    """

    api = Api(
        DescribeRebalancesRequest,
        DescribeRebalancesResponse,
        Versions(0, 0),
        needs=resource(AclOperation.DESCRIBE, AclResource.GROUP, lambda body: body.group_id),
    )

    groups: Groups

    def handle(
        self, _request: RequestContext, body: DescribeRebalancesRequest
    ) -> DescribeRebalancesResponse:
        """Answer from the history in memory, whose limited size also limits the answer."""
        return DescribeRebalancesResponse(
            rebalances=[
                described_rebalance(flight) for flight in self.groups.flights.of(body.group_id)
            ]
        )


def described_rebalance(flight: Flight) -> DescribedRebalance:
    """Return a rebalance as DescribeRebalances answers it."""
    return DescribedRebalance(
        protocol=flight.protocol,
        epoch=flight.epoch,
        began_ms=flight.began.timestamp_ms,
        ending=flight.ending,
        duration_ms=flight.duration_ms,
        formed_ms=flight.formed_ms,
        ended_by=flight.ended_by,
        members=flight.members,
        partitions=flight.partitions,
        moved=flight.moved,
        causes=[_cause(at_ms, cause) for at_ms, cause in flight.causes],
        causes_omitted=flight.causes_omitted,
        without_members=flight.without_members,
        without_total_ms=flight.without_total_ms,
        waits=[
            MemberWait(member_id=member_id, without_ms=without_ms)
            for member_id, without_ms in flight.longest()
        ],
    )


def _cause(at_ms: int, cause: GroupEvent) -> RebalanceCause:
    identity = cause.identity or _UNKNOWN_MEMBER
    return RebalanceCause(
        at_ms=at_ms,
        kind=cause.kind,
        member_id=identity.member_id,
        client_id=identity.client_id,
        host=identity.host,
        instance_id=identity.instance_id,
        words=cause.words,
        setting=cause.setting,
        is_trigger=cause.is_trigger,
    )
