"""The handlers that move partitions to other replicas, and elect their leaders."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.audit.details import partition_changes
from ottla.broker.controller import Controller
from ottla.broker.controller.requests import ElectionType, Outcomes
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)


def _alter_changes(
    body: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic; null replicas mean a cancelled reassignment."""
    return partition_changes(
        cluster_need(AclOperation.ALTER),
        (
            (one.name, part.partition_index, part.replicas)
            for one in body.topics
            for part in one.partitions
        ),
        (
            (one.name, part.partition_index, part.error_code)
            for one in response.responses
            for part in one.partitions
        ),
        "replicas",
        code=response.error_code,
    )


@dataclass(slots=True, eq=False, repr=False)
class AlterPartitionReassignments(Handler):
    """AlterPartitionReassignments (45), versions 0-1: moves partitions to other brokers (KIP-455).

    Only the controller serves it; other brokers answer NOT_CONTROLLER. Null replicas cancel a
    reassignment. The answer is sent when the reassignment has begun; ListPartitionReassignments
    shows its progress.
    """

    api = Api(
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.ALTER),
        changes=_alter_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.responses,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    controller: Controller

    async def handle(
        self, _request: RequestContext, body: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start or cancel the reassignment of each partition independently.

        If the request repeats a partition, its last entry applies.
        """
        wanted = {
            TopicPartition(topic.name, partition.partition_index): partition.replicas
            for topic in body.topics
            for partition in topic.partitions
        }
        outcomes = await self.controller.reassign(
            wanted, may_change_factor=body.allow_replication_factor_change
        )
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=body.allow_replication_factor_change,
            responses=[_response(topic, outcomes) for topic in body.topics],
        )


def _response(topic: ReassignableTopic, outcomes: Outcomes) -> ReassignableTopicResponse:
    """Return the response in the order of the request."""
    answered = ReassignableTopicResponse(name=topic.name)
    for partition in topic.partitions:
        error = outcomes[TopicPartition(topic.name, partition.partition_index)]
        response = ReassignablePartitionResponse(partition_index=partition.partition_index)
        if error is not None:
            response.error_code, response.error_message = error.code, error.message
        answered.partitions.append(response)
    return answered


@dataclass(slots=True, eq=False, repr=False)
class ListPartitionReassignments(Handler):
    """ListPartitionReassignments (46), version 0: lists the reassignments in progress (KIP-455).

    Only the controller serves it; other brokers answer NOT_CONTROLLER. Partitions that are not
    being reassigned are left out.
    """

    api = Api(
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.DESCRIBE),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
        ),
    )

    controller: Controller

    def handle(
        self, _request: RequestContext, body: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """Answer from the controller's state."""
        moves = self.controller.moves()
        asked = None
        if body.topics is not None:
            asked = {(t.name, index) for t in body.topics for index in t.partition_indexes}
        topics: dict[str, OngoingTopicReassignment] = {}
        for name, partition in moves.items():
            if asked is not None and name not in asked:
                continue
            topic = topics.get(name.topic)
            if topic is None:
                topic = topics[name.topic] = OngoingTopicReassignment(name=name.topic)
            topic.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=name.partition,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding),
                    removing_replicas=list(partition.removing),
                )
            )
        return ListPartitionReassignmentsResponse(topics=list(topics.values()))


_ERROR_OF_ALL_SINCE = 1
_ELECTIONS = {kind.value: kind.name.lower() for kind in ElectionType}


def _elect_changes(
    body: ElectLeadersRequest, response: ElectLeadersResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic in the request, or in the answer if it names none."""
    need = cluster_need(AclOperation.ALTER)
    detail = {"election": _ELECTIONS.get(body.election_type, str(body.election_type))}
    answered = [
        (one.topic, part.partition_id, part.error_code)
        for one in response.replica_election_results
        for part in one.partition_result
    ]
    if response.error_code and not answered and not body.topic_partitions:
        yield AdminChange((need,), detail, response.error_code)
    wanted = (
        (one.topic, index, None) for one in body.topic_partitions or () for index in one.partitions
    )
    yield from partition_changes(need, wanted, answered, detail=detail, code=response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class ElectLeaders(Handler):
    """ElectLeaders (43), versions 0-2: elects preferred leaders, or unclean ones.

    Only the controller serves it; other brokers answer NOT_CONTROLLER. If the request means all
    partitions (null), the answer lists only those that needed an election (KIP-183, KIP-460).
    """

    api = Api(
        ElectLeadersRequest,
        ElectLeadersResponse,
        Versions(0, 2),
        needs=cluster(AclOperation.ALTER),
        changes=_elect_changes,
        portions=in_portions(
            lambda body: body.topic_partitions,
            lambda response: response.replica_election_results,
            lambda topic: topic.topic,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partition_result),
        ),
    )

    controller: Controller

    async def handle(
        self, _request: RequestContext, body: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        """Elect the leader of each partition independently."""
        names = _names(body)
        outcomes = await self.controller.elect(_kind(body.election_type), names)
        if names is not None:
            # In the order of the request, as in Kafka.
            outcomes = {name: outcomes[name] for name in names}
        return ElectLeadersResponse(replica_election_results=_results(outcomes))

    @staticmethod
    def on_error(
        body: ElectLeadersRequest, code: ErrorCode, message: str | None, version: int
    ) -> ElectLeadersResponse:
        """Return the error at the top level, and for every named partition (in v0 only there)."""
        error = OttlaError(code, message or "")
        return ElectLeadersResponse(
            error_code=code if version >= _ERROR_OF_ALL_SINCE else ErrorCode.NONE,
            replica_election_results=_results(dict.fromkeys(_names(body) or (), error)),
        )


def _kind(election_type: int) -> ElectionType:
    try:
        return ElectionType(election_type)
    except ValueError:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"unknown election type {election_type}: 0 is preferred, 1 is unclean",
        ) from None


def _names(body: ElectLeadersRequest) -> list[TopicPartition] | None:
    if body.topic_partitions is None:
        return None
    return [
        TopicPartition(topic.topic, index)
        for topic in body.topic_partitions
        for index in topic.partitions
    ]


def _results(outcomes: Outcomes) -> list[ReplicaElectionResult]:
    topics: dict[str, ReplicaElectionResult] = {}
    for name, error in outcomes.items():
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = ReplicaElectionResult(topic=name.topic)
        result = PartitionResult(partition_id=name.partition)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        topic.partition_result.append(result)
    return list(topics.values())
