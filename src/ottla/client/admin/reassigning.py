"""Moving partitions to other brokers, and taking a move back (KIP-455)."""

from collections.abc import Mapping, Sequence

from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.errors import BrokerRefused, check, refused
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)


class ReassigningCalls(Calls):
    """Calls that begin and cancel moves."""

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, BrokerRefused | None]:
        """Let partitions move to these brokers, the preferred leader first; None cancels a move.

        Returns per partition None, or why its move did not begin. What began goes on by itself:
        see `reassignments`.
        """
        topics: dict[str, ReassignableTopic] = {}
        for (topic, index), replicas in wanted.items():
            entry = topics.setdefault(topic, ReassignableTopic(name=topic))
            entry.partitions.append(
                ReassignablePartition(
                    partition_index=index, replicas=None if replicas is None else list(replicas)
                )
            )
        request = AlterPartitionReassignmentsRequest(
            topics=list(topics.values()), timeout_ms=self.cluster.options.request_timeout_ms
        )

        async def begin() -> dict[TopicPartition, BrokerRefused | None]:
            controller = await self.cluster.controller()
            answer = await self.cluster.ask(
                controller, request, AlterPartitionReassignmentsResponse
            )
            check(answer.error_code, "move partitions", answer.error_message)
            found: dict[TopicPartition, BrokerRefused | None] = {}
            for told in answer.responses:
                for part in told.partitions:
                    name = TopicPartition(told.name, part.partition_index)
                    what = f"{'cancel the move of' if wanted.get(name) is None else 'move'} {name}"
                    found[name] = (
                        refused(part.error_code, what, part.error_message)
                        if part.error_code
                        else None
                    )
            return found

        return await self.retried(begin)
