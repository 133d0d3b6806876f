"""The records that consumer groups and share groups have in common.

Each kind of group has its own record types with its own numbers; their content is the same, and
defined here.
"""

from dataclasses import dataclass

from ottla.group.values.shares import Share


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """A group's epoch and the hash of the topics it was raised for; or its tombstone."""

    group_id: str
    epoch: int | None
    topics_hash: int = 0

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The group epoch that the target assignment is for, or its tombstone."""

    group_id: str
    epoch: int | None
    timestamp_ms: int = 0

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None


@dataclass(frozen=True, slots=True)
class TargetShare:
    """A member's part of the target assignment, or its tombstone."""

    group_id: str
    member_id: str
    share: Share | None

    @property
    def is_tombstone(self) -> bool:
        return self.share is None
