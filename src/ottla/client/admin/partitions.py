"""How partitions stand: leader, replicas, who is in sync, who is eligible, how many must be."""

from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin.configs import ResourceKind
from ottla.client.admin.topics import TopicCalls
from ottla.client.arguments import Names, name_list
from ottla.client.errors import UnsupportedByBroker
from ottla.client.view import NO_LEADER, TopicView
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

MIN_ISR = "min.insync.replicas"
_TOPICS_PER_REQUEST = 500
_Eligible = dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """A partition as it stands.

    `elr` are replicas out of the ISR that hold all that is committed, `last_known_elr` those who
    were last in ISR or ELR before both became empty (KIP-966; empty where a broker does not
    tell). `min_isr` is what acks=all needs: `min.insync.replicas`, at most all replicas.
    """

    name: TopicPartition
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_offline or len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """Whether the next replica that leaves the ISR stops acks=all, and one has left."""
        return not self.is_offline and self.is_under_replicated and len(self.isr) == self.min_isr


class PartitionCalls(TopicCalls):
    """Calls about how partitions stand."""

    async def partition_standings(self, topics: Names | None = None) -> list[PartitionStanding]:
        """All partitions of `topics` (None: of all topics), by name. Raises UnknownTopic."""
        if topics is None:
            views = await self.list_topics(internal=True)
        else:
            views = await self.describe_topics(topics)
        least = await self.min_isr(view.name for view in views)
        eligible = await self.retried(lambda: self._eligible(views))
        found: list[PartitionStanding] = []
        for view in views:
            for entry in view.partitions:
                name = TopicPartition(view.name, entry.index)
                elr, last_known = eligible.get(name, ((), ()))
                found.append(
                    PartitionStanding(
                        name,
                        entry.leader,
                        entry.leader_epoch,
                        entry.replicas,
                        entry.isr,
                        min(least.get(view.name, 1), len(entry.replicas)),
                        elr,
                        last_known,
                    )
                )
        return found

    async def min_isr(self, topics: Names) -> dict[str, int]:
        """`min.insync.replicas` by topic; topics that are gone meanwhile are left out."""
        names = name_list(topics)
        found: dict[str, int] = {}

        async def ask(part: list[str]) -> None:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=ResourceKind.TOPIC,
                        resource_name=name,
                        configuration_keys=[MIN_ISR],
                    )
                    for name in part
                ]
            )
            answer = await self.cluster.ask_any(request, DescribeConfigsResponse)
            for result in answer.results:
                for entry in result.configs:
                    if entry.value is not None:
                        found[result.resource_name] = int(entry.value)

        for start in range(0, len(names), _TOPICS_PER_REQUEST):
            await ask(names[start : start + _TOPICS_PER_REQUEST])
        return found

    async def _eligible(self, views: list[TopicView]) -> _Eligible:
        """ELR and last known ELR; nothing where the broker is too old to tell."""
        found: _Eligible = {}
        if not views:
            return found
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=view.name) for view in views]
        )
        while True:
            try:
                answer = await self.cluster.ask_any(request, DescribeTopicPartitionsResponse)
            except UnsupportedByBroker:
                return found
            for topic in answer.topics:
                for entry in topic.partitions:
                    elr = tuple(entry.eligible_leader_replicas or ())
                    last_known = tuple(entry.last_known_elr or ())
                    if elr or last_known:
                        name = TopicPartition(topic.name or "", entry.partition_index)
                        found[name] = elr, last_known
            if answer.next_cursor is None:
                return found
            request.cursor = Cursor(
                topic_name=answer.next_cursor.topic_name,
                partition_index=answer.next_cursor.partition_index,
            )
