"""A group of the classic protocol: its members, its offsets, and its state."""

from enum import StrEnum

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.records.stored import CommittedOffset, StoredGroup, StoredMember
from ottla.group.values.member import (
    CONSUMER_PROTOCOL_TYPE,
    Member,
    OfferedProtocol,
    subscribed_topics,
)


class GroupState(StrEnum):
    """The state of a group between two assignments.

    EMPTY: no members, perhaps offsets. PREPARING_REBALANCE: members are asked to join again.
    COMPLETING_REBALANCE: all have joined, the leader's assignment is awaited. STABLE: all members
    have their assignments. DEAD: only shown, for a group that does not exist.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Group:
    """One group of the classic protocol.

    `stored` and `offsets` are durable: only the coordinator's `apply` changes them. Everything
    else is the working state of a rebalance: a restart rebuilds it from `stored`, and members
    retry a JoinGroup that was not answered.

    Invariant: static_members maps the instance ids of members to their member ids.
    Invariant: leader is in members, or None if members is empty.
    """

    __slots__ = (
        "generation",
        "group_id",
        "is_initial",
        "is_member_added",
        "leader",
        "members",
        "offsets",
        "pending_joins",
        "pending_syncs",
        "protocol_name",
        "protocol_type",
        "remaining_delay_ms",
        "state",
        "state_timestamp_ms",
        "static_members",
        "stored",
        "subscribed",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.stored: StoredGroup | None = None
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.state = GroupState.EMPTY
        # When the state was entered (time of day), None if unknown.
        self.state_timestamp_ms: int | None = None
        self.generation = 0
        # None for a group that only ever committed offsets (a "simple" group).
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        # Member ids sent with MEMBER_ID_REQUIRED that have not joined yet, the oldest first.
        self.pending_joins: dict[str, None] = {}
        # Members that have not sent SyncGroup in this generation yet.
        self.pending_syncs: set[str] = set()
        # Topics the members read; None if that cannot be known.
        self.subscribed: frozenset[str] | None = None
        # The first rebalance of an empty group waits a while for more members.
        self.is_initial = False
        self.is_member_added = False
        self.remaining_delay_ms = 0

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.state is GroupState.EMPTY

    @property
    def is_void(self) -> bool:
        """Whether nothing would be lost if the group were forgotten."""
        return self.stored is None and not (self.offsets or self.members or self.pending_joins)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a join phase may last: as long as the slowest member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return not self.pending_joins and all(
            member.joining is not None for member in self.members.values()
        )

    def enter(self, state: GroupState, timestamp_ms: int) -> None:
        """Change to `state`."""
        self.state = state
        self.state_timestamp_ms = timestamp_ms

    def add(self, member: Member) -> None:
        """Add a member; the first one of an empty group decides its protocol type."""
        assert member.member_id not in self.members
        self.members[member.member_id] = member
        self.pending_joins.pop(member.member_id, None)
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a handed-out id; the next member replaces a removed leader."""
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old_member_id: str, new_member_id: str) -> Member:
        """Give a static member a new id; requests with the old id are fenced."""
        member = self.members[old_member_id]
        assert member.group_instance_id is not None
        member.member_id = new_member_id
        self.members = {each.member_id: each for each in self.members.values()}
        self.static_members[member.group_instance_id] = new_member_id
        if old_member_id in self.pending_syncs:
            self.pending_syncs.remove(old_member_id)
            self.pending_syncs.add(new_member_id)
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check the caller's member id, and the instance id of a static member (KIP-345)."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def common_protocols(self) -> set[str]:
        """The assignors every member can work with."""
        offered = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*offered) if offered else set()

    def accepts(self, protocol_type: str, protocols: tuple[OfferedProtocol, ...]) -> bool:
        """Whether a member that offers `protocols` may join."""
        if not protocol_type or not protocols:
            return False
        if self.state is GroupState.EMPTY:
            return True
        if protocol_type != self.protocol_type:
            return False
        return not self.members or not self.common_protocols().isdisjoint(
            name for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Return the assignor with the most votes among those that all members offer.

        If votes are equal, the choice of the earliest member wins.
        """
        candidates = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.votes_for(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def refresh_subscription(self) -> None:
        """Determine which topics the members read."""
        self.subscribed = subscribed_topics(
            self.protocol_type,
            None
            if self.protocol_name is None
            else [member.metadata(self.protocol_name) for member in self.members.values()],
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads `topic`; True for consumers whose topics are not known."""
        if self.subscribed is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed

    def to_stored(self, assignments: dict[str, bytes] | None = None) -> StoredGroup:
        """The group as its record, with `assignments`, or the present ones if that is None."""
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol_name=self.protocol_name,
            leader=self.leader,
            state_timestamp_ms=-1 if self.state_timestamp_ms is None else self.state_timestamp_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    def adopt(self, stored: StoredGroup) -> None:
        """Set the group's state from its record.

        Known members keep their protocols and waiting requests. A record that only changes member
        ids of static members during a rebalance is not applied: those ids have changed here before.
        """
        before, self.stored = self.stored, stored
        is_rebalancing = self.state in (
            GroupState.PREPARING_REBALANCE,
            GroupState.COMPLETING_REBALANCE,
        )
        if is_rebalancing and before is not None and before.is_renamed(stored):
            return
        self.protocol_type = stored.protocol_type or None
        self.generation = stored.generation
        self.protocol_name = stored.protocol_name
        if self.state is not GroupState.PREPARING_REBALANCE:
            # In a rebalance the members must still join, though the record says otherwise.
            self.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        self.state_timestamp_ms = (
            None if stored.state_timestamp_ms < 0 else stored.state_timestamp_ms
        )
        known = self.members
        self.members = {}
        self.static_members = {}
        for each in stored.members:
            member = known.get(each.member_id)
            if member is None or member.metadata(stored.protocol_name) != each.subscription:
                member = _revive(each, stored.protocol_name)
            member.assignment = each.assignment
            self.members[each.member_id] = member
            if each.group_instance_id is not None:
                self.static_members[each.group_instance_id] = each.member_id
        self.leader = (
            stored.leader if stored.leader in self.members else next(iter(self.members), None)
        )
        self.refresh_subscription()


# A group of either protocol: both have committed offsets.
AnyGroup = Group | ConsumerGroup


def _revive(stored: StoredMember, protocol_name: str | None) -> Member:
    offered = (
        () if protocol_name is None else (OfferedProtocol(protocol_name, stored.subscription),)
    )
    return Member(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout_ms,
        protocols=offered,
    )
