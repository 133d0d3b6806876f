"""Members of the consumer protocol and their coordinator, with a log in a list."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.coordinator.flights import Flight, Flights
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.records.stored import decode, encode
from ottla.group.values.settings import GroupSettings, Pace
from ottla.group.values.topics import (
    NOTHING,
    Share,
    Sight,
    TopicShape,
    by_topic,
    sees_all,
    share_of,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "readers"
PACE = Pace(session_timeout_ms=45_000, heartbeat_interval_ms=5_000)


class World:
    """Topics by name; each change makes another moment of them."""

    def __init__(self, **partitions: int) -> None:
        self.shapes = {
            name: TopicShape(name, UUID(int=number), count)
            for number, (name, count) in enumerate(partitions.items(), start=1)
        }
        self.token: object = object()

    def grow(self, name: str, partitions: int) -> None:
        shape = self.shapes.get(name) or TopicShape(name, UUID(int=len(self.shapes) + 1), 0)
        self.shapes[name] = shape._replace(partitions=partitions)
        self.token = object()

    def delete(self, name: str) -> None:
        del self.shapes[name]
        self.token = object()

    def find(self, name: str) -> TopicShape | None:
        return self.shapes.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((each.name for each in self.shapes.values() if each.id == topic_id), None)

    def names(self) -> Iterable[str]:
        return self.shapes


class Cluster:
    """A coordinator; `answers` come back from `carry_out`."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world = world
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.coordinator = GroupCoordinator(self.settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 0
        self.flights = Flights()
        # What whoever waited was told, by ticket.
        self.answers: dict[object, Any] = {}

    @property
    def at(self) -> Moment:
        return Moment(self.now_ms, 1_700_000_000_000 + self.now_ms, self.world)

    @property
    def group(self) -> ConsumerGroup:
        return self.coordinator.registry.consumer_groups[GROUP]

    @property
    def flight(self) -> Flight:
        """The latest rebalance of the group."""
        return self.flights.of(GROUP)[-1]

    def carry_out(self, decision: GroupDecision) -> None:
        self.flights.take(decision.notes, self.at)
        for record in decision.records:
            self.log.append(encode(record))
            self.coordinator.registry.apply(record)
        for reply in decision.replies:
            assert reply.ticket not in self.answers, "answered twice"
            self.answers[reply.ticket] = reply.message

    def send(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int = 1,
        sight: Sight = sees_all,
    ) -> ConsumerGroupHeartbeatResponse:
        ticket = object()
        call = Call(ticket, version, client_id="client", client_host="/host", nonce="made-up")
        commands = self.coordinator.members
        decision = commands.consumer_heartbeat(call, request, PACE, self.at, sight)
        self.carry_out(decision)
        answer = self.answers.pop(ticket)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def advance(self, delta_ms: int) -> None:
        self.now_ms += delta_ms
        while (due := self.coordinator.next_deadline_ms()) is not None and due <= self.now_ms:
            self.carry_out(self.coordinator.on_deadline(self.at))

    def fail_over(self) -> None:
        """Another coordinator reads the log."""
        self.coordinator = GroupCoordinator(self.settings)
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            self.coordinator.registry.apply(record)
        self.carry_out(self.coordinator.start(self.at))


class Member:
    """A consumer: it does what it is told, gives back first, and reports what it has."""

    def __init__(
        self,
        cluster: Cluster,
        member_id: str,
        topics: Iterable[str] = (),
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.cluster = cluster
        self.member_id = member_id
        self.instance_id = instance_id
        self.topics = list(topics)
        self.regex = regex
        self.assignor = assignor
        # Which topics its client may see.
        self.sight: Sight = sees_all
        self.epoch = 0
        self.owned: Share = NOTHING
        self.has_news = True

    def beat(self) -> ErrorCode:
        """One heartbeat; what it is told it has at once."""
        answer = self.cluster.send(self.request(), sight=self.sight)
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch, self.owned, self.has_news = 0, NOTHING, True
        elif code is ErrorCode.NONE:
            self.hear(answer)
        return code

    def hear(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.has_news = False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = share_of(answer.assignment.topic_partitions)
            self.has_news = True

    def request(self) -> ConsumerGroupHeartbeatRequest:
        says_all = self.has_news
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=60_000 if says_all else -1,
            subscribed_topic_names=self.topics if says_all else None,
            subscribed_topic_regex=self.regex if says_all else None,
            server_assignor=self.assignor if says_all else None,
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in by_topic(self.owned).items()
            ]
            if says_all
            else None,
        )

    def leave(self, *, for_a_while: bool = False) -> ErrorCode:
        answer = self.cluster.send(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                member_epoch=-2 if for_a_while else -1,
                instance_id=self.instance_id,
            )
        )
        self.epoch, self.owned, self.has_news = 0, NOTHING, True
        return ErrorCode(answer.error_code)


def settle(*members: Member) -> None:
    """Heartbeats in turn until nobody hears anything new."""
    for _ in range(20):
        before = [(member.epoch, member.owned) for member in members]
        for member in members:
            assert member.beat() is ErrorCode.NONE
        if before == [(member.epoch, member.owned) for member in members]:
            return
    raise AssertionError("the group does not come to rest")
