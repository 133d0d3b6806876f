"""ListPartitionReassignments (46), version 0: lists the reassignments in progress (KIP-455).

Only the controller serves it: others answer NOT_CONTROLLER. Other partitions are left out.
"""

from dataclasses import dataclass

from ottla.broker.controller import Controller
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


@dataclass(slots=True, eq=False, repr=False)
class ListPartitionReassignments(Handler):
    """Serves ListPartitionReassignments."""

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
        """Answer from the controller's context."""
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
