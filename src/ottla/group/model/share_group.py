"""A share group: its members, their assignments, and the partitions with initialized state."""

from enum import StrEnum
from uuid import UUID

from ottla.group.records.share import (
    ShareCurrent,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareMemberRecord,
    ShareStateRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    TopicState,
)
from ottla.group.values.topics import NOTHING, Share


class ShareGroupPhase(StrEnum):
    """The state of a group, by Kafka's names: without members or with some."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """One group. All its fields but `seen_topics` are durable: `apply` alone changes them.

    Invariant: the keys of `current` and `target` are members.
    Invariant: no topic is both in `begun` and in `deleting`.
    """

    __slots__ = (
        "begun",
        "current",
        "deleting",
        "epoch",
        "group_id",
        "members",
        "seen_topics",
        "target",
        "target_epoch",
        "topics_hash",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.topics_hash = 0
        self.members: dict[str, ShareMemberMetadata] = {}
        self.target_epoch = 0
        self.target: dict[str, Share] = {}
        self.current: dict[str, ShareCurrent] = {}
        # Topics with initialized state; only their partitions are assigned to members.
        self.begun: dict[UUID, TopicState] = {}
        # Topics whose state is being deleted; it is not initialized again before that is done.
        self.deleting: dict[UUID, TopicState] = {}
        # The topics that `topics_hash` was last compared with, None if it must be compared again.
        self.seen_topics: object = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ShareGroupPhase:
        return ShareGroupPhase.STABLE if self.members else ShareGroupPhase.EMPTY

    def target_of(self, member_id: str) -> Share:
        """A member's target assignment."""
        return self.target.get(member_id, NOTHING)

    def mend(self) -> None:
        """After a loss of records, drop assignments of unknown members, and raise the epoch.

        The group epoch becomes the highest epoch in the group.
        """
        self.current = {each: kept for each, kept in self.current.items() if each in self.members}
        self.target = {each: kept for each, kept in self.target.items() if each in self.members}
        self.begun = {each: kept for each, kept in self.begun.items() if each not in self.deleting}
        epochs = [current.epoch for current in self.current.values()]
        self.epoch = max([self.epoch, self.target_epoch, *epochs])

    def apply(self, record: ShareGroupRecord) -> None:
        """Apply a record to the state; applying it twice has the same effect as once."""
        match record:
            case ShareMemberRecord(_, member_id, metadata):
                if metadata is None:
                    self.members.pop(member_id, None)
                else:
                    self.members[member_id] = metadata
            case ShareEpochRecord(_, epoch, topics_hash):
                self.epoch = epoch or 0
                self.topics_hash = topics_hash
            case ShareTargetEpochRecord(_, epoch):
                self.target_epoch = epoch or 0
            case ShareTargetRecord(_, member_id, share):
                if share is None:
                    self.target.pop(member_id, None)
                else:
                    self.target[member_id] = share
            case ShareCurrentRecord(_, member_id, current):
                if current is None:
                    self.current.pop(member_id, None)
                else:
                    self.current[member_id] = current
            case ShareStateRecord(_, begun, deleting):
                self.begun = {topic.id: topic for topic in begun or ()}
                self.deleting = {topic.id: topic for topic in deleting}
