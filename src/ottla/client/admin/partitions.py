"""Partitions: leader, replicas, ISR, ELR; elections by command (KIP-460); moves (KIP-455)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from ottla.base.ids import TopicPartition, by_topic
from ottla.client.admin.calls import Calls
from ottla.client.admin.configs import Configs
from ottla.client.admin.topics import Topics
from ottla.client.common import arguments
from ottla.client.common.arguments import Names, checks_calls, partition_list
from ottla.client.common.errors import BrokerRefused, UnsupportedByBroker, check, refused
from ottla.client.connection.view import NO_LEADER, TopicDescription
from ottla.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)

MIN_ISR = "min.insync.replicas"
_Eligible = dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The state of a partition.

    `elr` are replicas outside the ISR that hold every committed record, `last_known_elr` the
    replicas that were last in ISR or ELR before both became empty (KIP-966; empty for older
    brokers). `min_isr` is the ISR size that acks=all requires: `min.insync.replicas`, but not more
    than all replicas.
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
        """Whether the ISR lacks a replica, and acks=all fails if it loses one more."""
        return not self.is_offline and self.is_under_replicated and len(self.isr) == self.min_isr


class ElectionKind(IntEnum):
    """The replica to elect: the preferred one if it is in sync, or any that is online."""

    PREFERRED = 0
    UNCLEAN = 1


# The names of the kinds of elections.
ElectionName = Literal["preferred", "unclean"]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress. `replicas` are the old replicas and those in `adding`."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas after the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@checks_calls()
class Partitions:
    """`admin.partitions`: their state, elections of leaders, and reassignments."""

    def __init__(self, calls: Calls, topics: Topics, configs: Configs) -> None:
        self._calls = calls
        self._topics = topics
        self._configs = configs

    async def describe(self, topics: Names | None = None) -> list[PartitionStatus]:
        """Return all partitions of `topics` (None: of all topics), by name. Raises UnknownTopic."""
        if topics is None:
            views = await self._topics.all(internal=True)
        else:
            views = await self._topics.describe_all(topics)
        least = await self.min_isr(view.name for view in views)
        eligible = await self._calls.retried(lambda: self._eligible(views))
        found: list[PartitionStatus] = []
        for view in views:
            for entry in view.partitions:
                name = TopicPartition(view.name, entry.partition)
                elr, last_known = eligible.get(name, ((), ()))
                found.append(
                    PartitionStatus(
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
        """Return `min.insync.replicas` by topic; topics deleted meanwhile are left out."""
        found = await self._configs.describe_topics(topics, [MIN_ISR])
        return {
            name: int(entries[MIN_ISR].value or 1)
            for name, entries in found.items()
            if MIN_ISR in entries
        }

    async def elect_leaders(
        self, kind: ElectionKind | ElectionName, partitions: arguments.Partitions | None = None
    ) -> dict[TopicPartition, BrokerRefused | None]:
        """Elect leaders of `partitions` (None: of all partitions that need an election).

        Returns an error per partition, None for success. ELECTION_NOT_NEEDED means that the wanted
        replica is the leader already. An UNCLEAN election may lose acknowledged records.
        """
        topics = [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partition_list(partitions or ())).items()
        ]
        request = ElectLeadersRequest(
            election_type=kind if isinstance(kind, ElectionKind) else ElectionKind[kind.upper()],
            topic_partitions=None if partitions is None else topics,
            timeout_ms=self._calls.cluster.options.request_timeout_ms,
        )

        def read(answer: ElectLeadersResponse) -> dict[TopicPartition, BrokerRefused | None]:
            check(answer.error_code, "hold elections")
            found: dict[TopicPartition, BrokerRefused | None] = {}
            for topic in answer.replica_election_results:
                for result in topic.partition_result:
                    name = TopicPartition(topic.topic, result.partition_id)
                    found[name] = (
                        refused(
                            result.error_code, f"elect a leader of {name}", result.error_message
                        )
                        if result.error_code
                        else None
                    )
            return found

        return await self._calls.ask_controller(request, ElectLeadersResponse, read)

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, BrokerRefused | None]:
        """Move partitions to these brokers, the preferred leader first; None cancels a move.

        Returns the error per partition, None if its move has begun. Moves that began continue in
        the background: see `reassignments`.
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
            topics=list(topics.values()), timeout_ms=self._calls.cluster.options.request_timeout_ms
        )

        def read(
            answer: AlterPartitionReassignmentsResponse,
        ) -> dict[TopicPartition, BrokerRefused | None]:
            check(answer.error_code, "move partitions", answer.error_message)
            found: dict[TopicPartition, BrokerRefused | None] = {}
            for topic in answer.responses:
                for part in topic.partitions:
                    name = TopicPartition(topic.name, part.partition_index)
                    what = f"{'cancel the move of' if wanted.get(name) is None else 'move'} {name}"
                    found[name] = (
                        refused(part.error_code, what, part.error_message)
                        if part.error_code
                        else None
                    )
            return found

        return await self._calls.ask_controller(request, AlterPartitionReassignmentsResponse, read)

    async def reassignments(
        self, partitions: arguments.Partitions | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the moves in progress of `partitions` (None: of all).

        Other partitions are left out.
        """
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partition_list(partitions or ())).items()
        ]
        request = ListPartitionReassignmentsRequest(
            topics=None if partitions is None else topics,
            timeout_ms=self._calls.cluster.options.request_timeout_ms,
        )

        def read(answer: ListPartitionReassignmentsResponse) -> dict[TopicPartition, Reassignment]:
            check(answer.error_code, "list the moves of partitions", answer.error_message)
            return {
                TopicPartition(topic.name, part.partition_index): Reassignment(
                    tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
                )
                for topic in answer.topics
                for part in topic.partitions
            }

        return await self._calls.ask_controller(request, ListPartitionReassignmentsResponse, read)

    async def _eligible(self, views: list[TopicDescription]) -> _Eligible:
        """Return ELR and last known ELR; empty if the broker is too old to have them."""
        found: _Eligible = {}
        if not views:
            return found
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=view.name) for view in views]
        )
        while True:
            try:
                answer = await self._calls.cluster.ask_any(request, DescribeTopicPartitionsResponse)
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
