"""The coordinator of the groups in one partition of `__consumer_offsets`.

Commands decide: they return the records to append and the answers to give once these are
committed. Only `apply` changes the durable state, so that replaying the partition rebuilds it.
Waiting requests and the deadlines of sessions are soft state: commands change it at once, and a
coordinator whose append failed is thrown away and replayed.
It does no I/O, knows no clock, and never waits.
"""

from collections.abc import Sequence

from ottla.group.classic import liveness
from ottla.group.classic.causes import note_too_many
from ottla.group.classic.rebalance import keep_alive, prepare
from ottla.group.consumer import deadlines, description
from ottla.group.coordinator import descriptions
from ottla.group.coordinator.conversion import downgrade_if_classic, go_on_after_downgrade
from ottla.group.coordinator.membership_commands import MembershipCommands
from ottla.group.coordinator.offset_commands import OffsetCommands
from ottla.group.coordinator.registry import Registry
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.turn import Call, GroupDecision, Moment, answered
from ottla.group.offsets import deletion
from ottla.group.values.member import Ticket
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import TopicsView
from ottla.wire.messages.groups import ListedGroup


class GroupCoordinator:
    """Has the groups, the commands about members and about offsets; acts on deadlines."""

    def __init__(self, settings: GroupSettings) -> None:
        self.registry = Registry(settings)
        self.members = MembershipCommands(self.registry)
        self.offsets = OffsetCommands(self.registry)
        # The share groups of the registry, with their commands.
        self.share = self.registry.share

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` wants to be called next (monotonic), None if nothing is due."""
        return self.registry.timers.next_deadline_ms()

    def on_deadline(self, at: Moment) -> GroupDecision:
        """Act on the earliest deadline that has passed, if any; call again until none is due."""
        turn = self.registry.turn(at)
        key = self.registry.timers.pop_due(at.now_ms)
        if key is not None and key.group_id in self.share:
            self.share.on_deadline(turn, key)
        elif key is not None:
            group = self.registry.any(key.group_id)
            if isinstance(group, ConsumerGroup):
                deadlines.on_deadline(turn, group, key)
                downgrade_if_classic(self.registry, turn, group)
            elif group is not None:
                liveness.on_deadline(turn, group, key)
        return turn.decision

    def start(self, at: Moment) -> GroupDecision:
        """After the replay, start the sessions of the members found (KIP-62 keeps them)."""
        turn = self.registry.turn(at)
        self.registry.sweep()
        for group in self.registry.groups.values():
            for member in group.members.values():
                keep_alive(turn, group, member)
            if len(group.members) > self.registry.settings.max_size:
                note_too_many(turn, group)
                prepare(turn, group)
            else:
                go_on_after_downgrade(turn, group)
        for consumer_group in list(self.registry.consumer_groups.values()):
            deadlines.start(turn, consumer_group)
            downgrade_if_classic(self.registry, turn, consumer_group)
        self.share.start(turn)
        return turn.decision

    def waiting(self) -> list[Ticket]:
        """The requests that wait in a join or a sync, to be answered when this coordinator ends."""
        return [
            ticket
            for group in self.registry.groups.values()
            for member in group.members.values()
            for ticket in (member.joining, member.syncing)
            if ticket is not None
        ]

    def describe(self, call: Call, group_id: str) -> GroupDecision:
        """DescribeGroups for one group; the answer is a DescribedGroup."""
        is_other = group_id in self.registry.consumer_groups or group_id in self.share
        group = self.registry.groups.get(group_id)
        described = descriptions.describe(group_id, group, call.version, is_other=is_other)
        return answered(call, described)

    def describe_consumer_group(
        self, call: Call, group_id: str, topics: TopicsView
    ) -> GroupDecision:
        """ConsumerGroupDescribe for one group; the answer is its DescribedGroup."""
        group = self.registry.consumer_groups.get(group_id)
        if group is None:
            is_classic = group_id in self.registry.groups or group_id in self.share
            return answered(call, description.not_found(group_id, is_classic=is_classic))
        assignors = self.registry.settings.consumer_assignors
        return answered(call, description.describe(group, topics, assignors))

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """ListGroups, with the filters of its request."""
        return [
            descriptions.listed(group)
            for group in (*self.registry.all(), *self.share.groups.values())
            if descriptions.is_listed(group, states, types)
        ]

    def delete(self, call: Call, group_id: str, at: Moment) -> GroupDecision:
        """DeleteGroups for one group; the answer is an ErrorCode."""
        turn = self.registry.turn(at)
        group = self.registry.any(group_id)
        turn.reply(call.ticket, deletion.delete_group(turn, group, self.registry.pending))
        return turn.decision
