"""ElectLeaders (43), versions 0-2: elects preferred leaders, or unclean ones.

Only the controller serves it: others answer NOT_CONTROLLER. For all partitions (null) the answer
lists only those that needed an election (KIP-183, KIP-460).
"""

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
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ERROR_OF_ALL_SINCE = 1
_ELECTIONS = {kind.value: kind.name.lower() for kind in ElectionType}


def _changes(body: ElectLeadersRequest, response: ElectLeadersResponse) -> Iterator[AdminChange]:
    """Return an audit line for each topic; for a request of all topics, for each answered one."""
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
    """Serves ElectLeaders."""

    api = Api(
        ElectLeadersRequest,
        ElectLeadersResponse,
        Versions(0, 2),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
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
        """Hold the elections, each partition independently."""
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
        """Return the error for the whole and for every named partition (the only place in v0)."""
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
