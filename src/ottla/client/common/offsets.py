"""A committed offset, and the member that commits it for a group in a transaction (KIP-447)."""

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """A group and one of its members; with only the group's name, brokers check no member."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, and a note of the committer."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
