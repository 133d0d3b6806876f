"""AlterPartitionReassignments (45), versions 0-1: moves partitions to other brokers (KIP-455).

Only the controller serves it: others answer NOT_CONTROLLER. Null replicas cancel a move. The
answer says that a move has begun; ListPartitionReassignments shows its progress.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.broker.audit.details import partition_changes
from ottla.broker.controller import Controller
from ottla.broker.controller.requests import Outcomes
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)


def _changes(
    body: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic; null cancels a reassignment."""
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
    """Serves AlterPartitionReassignments."""

    api = Api(
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
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
        """Begin or cancel moves, each partition independently.

        Of a repeated partition, the last entry counts.
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
