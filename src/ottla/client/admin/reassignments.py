"""The moves of partitions that are under way (KIP-455)."""

from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.arguments import Partitions, partition_list
from ottla.client.errors import check
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move under way: `replicas` are old and new ones, `adding` come and `removing` go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas at its end."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class ReassignmentCalls(Calls):
    """Calls that watch moves."""

    async def reassignments(
        self, partitions: Partitions | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The moves under way of `partitions` (None: of all); what does not move is left out."""
        topics: dict[str, ListPartitionReassignmentsTopics] = {}
        for topic, index in () if partitions is None else partition_list(partitions):
            entry = topics.setdefault(topic, ListPartitionReassignmentsTopics(name=topic))
            entry.partition_indexes.append(index)
        request = ListPartitionReassignmentsRequest(
            topics=None if partitions is None else list(topics.values()),
            timeout_ms=self.cluster.options.request_timeout_ms,
        )

        async def ask() -> dict[TopicPartition, Reassignment]:
            controller = await self.cluster.controller()
            answer = await self.cluster.ask(controller, request, ListPartitionReassignmentsResponse)
            check(answer.error_code, "list the moves of partitions", answer.error_message)
            return {
                TopicPartition(topic.name, part.partition_index): Reassignment(
                    tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
                )
                for topic in answer.topics
                for part in topic.partitions
            }

        return await self.retried(ask)
