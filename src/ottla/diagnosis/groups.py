"""The state of groups of any kind: members, positions in each partition, and lag."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.groups import SHARE, GroupDescription, GroupListing, GroupMember
from ottla.client.consumer.offsets import LATEST
from ottla.diagnosis.partitions import known_offsets
from ottla.diagnosis.retention import GroupLoss, group_losses


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """A partition that a consumer group has committed, or that is assigned to a member.

    `committed` is None without a committed offset. `end_offset` is None if the partition does
    not exist or has no leader. `loss` is None if the brokers do not report it.
    """

    name: TopicPartition
    committed: int | None
    end_offset: int | None
    owner: GroupMember | None
    loss: GroupLoss | None

    @property
    def lag(self) -> int | None:
        """Return the number of offsets from the committed one to the end of the log."""
        if self.committed is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.committed)

    @property
    def beyond_end(self) -> int:
        """Return how far the committed offset is beyond the end of the log; otherwise 0."""
        if self.committed is None or self.end_offset is None:
            return 0
        return max(0, self.committed - self.end_offset)


@dataclass(frozen=True, slots=True)
class ShareGroupPosition:
    """A partition that a share group reads, and the ids of the members that read it."""

    name: TopicPartition
    start_offset: int | None
    lag: int | None
    members: tuple[str, ...]


def is_classic(listing: GroupListing) -> bool:
    """Whether the group uses the classic protocol, like all groups of older brokers."""
    return listing.kind.lower() in ("", "classic")


async def listed_group(admin: Admin, group_id: str) -> GroupListing:
    """Return the group's entry in the list. Raises GROUP_ID_NOT_FOUND, naming a similar group."""
    listed = {listing.group_id: listing for listing in await admin.groups.all()}
    if group_id not in listed:
        names = list(listed)
        near = get_close_matches(group_id, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ottla group list` lists them"
        raise OttlaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}; {hint}")
    return listed[group_id]


async def described_group(admin: Admin, group_id: str) -> GroupDescription:
    """Describe a group. Raises GROUP_ID_NOT_FOUND, naming a similar group.

    For a group of the consumer protocol (KIP-848), only the state is returned.
    """
    listing = await listed_group(admin, group_id)
    if listing.kind.lower() == SHARE:
        return await admin.share_groups.describe(group_id)
    if not is_classic(listing):
        return GroupDescription(group_id, listing.state, listing.protocol_type, "", -1, ())
    (description,) = await admin.groups.describe_all([group_id])
    return description


async def positions(admin: Admin, description: GroupDescription) -> list[GroupPosition]:
    """Return a consumer group's positions by partition."""
    committed = await admin.groups.offsets(description.group_id)
    owners = {name: member for member in description.members for name in member.partitions}
    names = sorted({*committed, *owners})
    ends = await known_offsets(admin, names, LATEST)
    offsets = {name: entry.offset for name, entry in committed.items()}
    losses = await group_losses(admin, description.group_id, offsets)
    return [
        GroupPosition(name, offsets.get(name), ends.get(name), owners.get(name), losses.get(name))
        for name in names
    ]


async def share_positions(admin: Admin, description: GroupDescription) -> list[ShareGroupPosition]:
    """Return a share group's positions by partition."""
    found = await admin.share_groups.offsets(description.group_id)
    members: dict[TopicPartition, list[str]] = {}
    for member in description.members:
        for name in member.partitions:
            members.setdefault(name, []).append(member.member_id)
    return [
        ShareGroupPosition(
            name,
            found[name].start_offset if name in found else None,
            found[name].lag if name in found else None,
            tuple(members.get(name, ())),
        )
        for name in sorted({*found, *members})
    ]


def total_lag(lags: Iterable[int | None]) -> int | None:
    """Return the sum of the known lags; None if none is known."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None
