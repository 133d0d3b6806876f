"""Who commits offsets for a group: what a transaction tells of its consumer (KIP-447)."""

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """A group, and its member in one generation; without these, whoever knows the group's name."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
