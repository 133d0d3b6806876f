"""The coordinator of the groups in one partition of `__consumer_offsets`.

Commands decide: they return the records to append and the answers to give once these are
committed. Only `apply` changes the durable state, so that replaying the partition rebuilds it.
Waiting requests and the deadlines of sessions are soft state: commands change it at once, and a
coordinator whose append failed is thrown away and replayed.
It does no I/O, knows no clock, and never waits.
"""

from collections.abc import Sequence

from ottla.group.classic import membership as classic_membership
from ottla.group.classic.causes import note_too_many
from ottla.group.classic.rebalance import keep_alive, prepare
from ottla.group.consumer import membership as consumer_membership
from ottla.group.coordinator import descriptions
from ottla.group.coordinator.conversion import downgrade_if_classic, go_on_after_downgrade
from ottla.group.coordinator.membership_commands import MembershipCommands
from ottla.group.coordinator.offset_commands import OffsetCommands
from ottla.group.coordinator.registry import Registry
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.turn import Call, GroupDecision, Moment, answered
from ottla.group.offsets.stored_offsets import delete_group
from ottla.group.values.member import Ticket
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import TopicsView
from ottla.wire.messages.consumer_groups import DescribedShareGroup
from ottla.wire.messages.groups import ListedGroup


class GroupCoordinator:
    """The groups, with the commands on members and on offsets, and the work at deadlines."""

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
                consumer_membership.on_deadline(turn, group, key)
                downgrade_if_classic(self.registry, turn, group)
            elif group is not None:
                classic_membership.on_deadline(turn, group, key)
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
            consumer_membership.start(turn, consumer_group)
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
        """Handle DescribeGroups for one group; the answer is a DescribedGroup."""
        group = self.registry.groups.get(group_id)
        is_other = self.registry.knows(group_id)
        return answered(
            call,
            descriptions.describe_classic_group(group_id, group, call.version, is_other=is_other),
        )

    def describe_consumer_group(
        self, call: Call, group_id: str, topics: TopicsView
    ) -> GroupDecision:
        """Handle ConsumerGroupDescribe for one group; the answer is a DescribedConsumerGroup."""
        group = self.registry.consumer_groups.get(group_id)
        is_other = self.registry.knows(group_id)
        assignors = self.registry.settings.consumer_assignors
        return answered(
            call,
            descriptions.describe_consumer_group(
                group_id, group, topics, assignors, is_other=is_other
            ),
        )

    def describe_share_group(self, group_id: str, topics: TopicsView) -> DescribedShareGroup:
        """Describe a share group for ShareGroupDescribe."""
        group = self.share.groups.get(group_id)
        is_other = self.registry.knows(group_id)
        return descriptions.describe_share_group(group_id, group, topics, is_other=is_other)

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """Return the groups that pass the filters of ListGroups."""
        return [
            descriptions.listed(group)
            for group in (*self.registry.all(), *self.share.groups.values())
            if descriptions.is_listed(group, states, types)
        ]

    def delete(self, call: Call, group_id: str, at: Moment) -> GroupDecision:
        """Handle DeleteGroups for one group; the answer is an ErrorCode."""
        turn = self.registry.turn(at)
        group = self.registry.any(group_id)
        turn.reply(call.ticket, delete_group(turn, group, self.registry.pending))
        return turn.decision
