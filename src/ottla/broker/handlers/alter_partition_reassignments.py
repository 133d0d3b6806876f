"""AlterPartitionReassignments (45), versions 0-1: moves partitions to other brokers (KIP-455).

Only the controller serves it: others answer NOT_CONTROLLER. Null replicas cancel a move. The
answer says that a move has begun; ListPartitionReassignments shows its progress.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.controller import Controller
from ottla.broker.controller.requests import Outcomes
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class AlterPartitionReassignments(Handler):
    """Serves AlterPartitionReassignments."""

    api = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    versions = Versions(0, 1)

    controller: Controller

    async def handle(
        self, _request: RequestContext, body: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Begin or cancel moves, each partition independently."""
        wanted = {
            TopicPartition(topic.name, partition.partition_index): partition.replicas
            for topic in body.topics
            for partition in topic.partitions
        }
        if len(wanted) < sum(len(topic.partitions) for topic in body.topics):
            raise OttlaError(ErrorCode.INVALID_REQUEST, "a partition is named twice; name it once")
        outcomes = await self.controller.reassign(
            wanted, may_change_factor=body.allow_replication_factor_change
        )
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=body.allow_replication_factor_change,
            responses=_responses(outcomes),
        )

    @staticmethod
    def on_error(
        _body: AlterPartitionReassignmentsRequest,
        code: ErrorCode,
        message: str | None,
        _version: int,
    ) -> AlterPartitionReassignmentsResponse:
        """The error for the whole."""
        return AlterPartitionReassignmentsResponse(error_code=code, error_message=message)


def _responses(outcomes: Outcomes) -> list[ReassignableTopicResponse]:
    topics: dict[str, ReassignableTopicResponse] = {}
    for name, error in outcomes.items():
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = ReassignableTopicResponse(name=name.topic)
        response = ReassignablePartitionResponse(partition_index=name.partition)
        if error is not None:
            response.error_code, response.error_message = error.code, error.message
        topic.partitions.append(response)
    return list(topics.values())
