"""A group of the consumer protocol: its members, their target and current assignments."""

from enum import StrEnum
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.group.records.consumer import (
    ConsumerGroupRecord,
    Current,
    CurrentRecord,
    EpochRecord,
    MemberMetadata,
    MemberRecord,
    MemberState,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.records.stored import CommittedOffset
from ottla.group.values.settings import Pace
from ottla.group.values.topics import NOTHING, AssignedSlot, Share, Sight

# The current assignment of a member before its first answer.
NEW = Current(0, 0, MemberState.STABLE, NOTHING, NOTHING)
# The epoch of a group without records, and the first epoch of a new group.
NO_EPOCH = 0
FIRST_EPOCH = 1
# The epoch of a static member that has left temporarily and is expected back.
AWAY = -2


class ConsumerGroupState(StrEnum):
    """The state of a group, by Kafka's names.

    EMPTY: no members. ASSIGNING: the target assignment is for an older group epoch. RECONCILING:
    some member has not reached its target. STABLE: all members have reached their targets.
    """

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """One group of the consumer protocol.

    Its fields are durable and changed by records only, except `pace`, `seen_topics`, `subscribed`
    and the three fields about patterns: `sights`, `read_by` and `unheard`.

    Invariant: `owners` maps each partition to the one member that has it or must revoke it.
    Invariant: the keys of `current` and `target` are members.
    """

    __slots__ = (
        "current",
        "epoch",
        "group_id",
        "members",
        "offsets",
        "owners",
        "pace",
        "read_by",
        "seen_topics",
        "sights",
        "static_members",
        "subscribed",
        "target",
        "target_epoch",
        "topics_hash",
        "unheard",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = NO_EPOCH
        self.topics_hash = 0
        self.members: dict[str, MemberMetadata] = {}
        self.static_members: dict[str, str] = {}
        self.target_epoch = 0
        self.target: dict[str, Share] = {}
        self.current: dict[str, Current] = {}
        self.owners: dict[AssignedSlot, str] = {}
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        # Names of the topics that members read, by name or by pattern; None before this
        # coordinator has received a heartbeat.
        self.subscribed: frozenset[str] | None = None
        # The heartbeat interval and session timeout last sent to members.
        self.pace: Pace | None = None
        # For members that subscribe by a pattern: the topics they may see, and those they read.
        self.sights: dict[str, Sight] = {}
        self.read_by: dict[str, frozenset[UUID]] = {}
        # Members with a pattern whose sight was still unknown when the target was computed.
        self.unheard: frozenset[str] = frozenset()
        # The topics that `topics_hash` was last compared with, None if it must be compared again.
        self.seen_topics: object = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def uses_consumer_protocol(self) -> bool:
        """Always True: the members' subscriptions are known."""
        return True

    @property
    def is_void(self) -> bool:
        """Whether nothing would be lost if the group were forgotten."""
        return self.epoch == NO_EPOCH and not self.members and not self.offsets

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        for member_id in self.members:
            current = self.current.get(member_id)
            if (
                current is None
                or current.state is not MemberState.STABLE
                or current.epoch not in (self.target_epoch, AWAY)
            ):
                return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    def is_taken(self, slot: AssignedSlot, by_other_than: str) -> bool:
        """Whether another member has the partition, or has yet to revoke it."""
        return self.owners.get(slot, by_other_than) != by_other_than

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads `topic`; True if that is not known yet."""
        if not self.members:
            return False
        return self.subscribed is None or topic in self.subscribed

    def apply(self, record: ConsumerGroupRecord) -> None:
        """Apply a record to the state; applying it twice has the same effect as once."""
        match record:
            case EpochRecord(_, epoch, topics_hash):
                self.epoch = epoch or 0
                self.topics_hash = topics_hash
            case MemberRecord(_, member_id, metadata):
                self._set_member(member_id, metadata)
            case TargetEpochRecord(_, epoch):
                self.target_epoch = epoch or 0
            case TargetRecord(_, member_id, share):
                if share is None:
                    self.target.pop(member_id, None)
                else:
                    self.target[member_id] = share
            case CurrentRecord(_, member_id, current):
                self._set_current(member_id, current)

    def mend(self) -> None:
        """After a loss of records, drop assignments of unknown members.

        Otherwise their partitions would never be assigned again. Also raise the group epoch to the
        highest epoch in the group.
        """
        for member_id in [each for each in self.current if each not in self.members]:
            self._set_current(member_id, None)
        for member_id in [each for each in self.target if each not in self.members]:
            del self.target[member_id]
        epochs = [current.epoch for current in self.current.values()]
        self.epoch = max([self.epoch, self.target_epoch, *epochs])

    def target_of(self, member_id: str) -> Share:
        """A member's target assignment."""
        return self.target.get(member_id, NOTHING)

    def _set_member(self, member_id: str, metadata: MemberMetadata | None) -> None:
        before = self.members.pop(member_id, None)
        instance_id = None if before is None else before.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]
        if metadata is None or metadata.topic_regex is None:
            self.sights.pop(member_id, None)
            self.read_by.pop(member_id, None)
        if metadata is not None:
            self.members[member_id] = metadata
            if metadata.instance_id is not None:
                self.static_members[metadata.instance_id] = member_id

    def _set_current(self, member_id: str, current: Current | None) -> None:
        before = self.current.pop(member_id, None)
        if before is not None:
            for slot in before.assigned | before.revoking:
                if self.owners.get(slot) == member_id:
                    del self.owners[slot]
        if current is not None:
            self.current[member_id] = current
            for slot in current.assigned | current.revoking:
                self.owners[slot] = member_id
