"""Which group is meant, and whether it stands still; asked before it is changed."""

from difflib import get_close_matches

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin
from ottla.client.admin.groups import GroupDescription, GroupListing
from ottla.client.admin.share_groups import SHARE

_AT_REST = ("Empty", "Dead")


def is_classic(listing: GroupListing) -> bool:
    """Whether the group is of the classic protocol; older brokers know no other and say nothing."""
    return listing.kind.lower() in ("", "classic")


async def listed_group(admin: Admin, group_id: str) -> GroupListing:
    """The group as it is listed. Raises GROUP_ID_NOT_FOUND, naming the nearest."""
    listed = {listing.group_id: listing for listing in await admin.groups.all()}
    if group_id not in listed:
        names = list(listed)
        near = get_close_matches(group_id, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ottla group list` lists them"
        raise OttlaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}; {hint}")
    return listed[group_id]


async def described_group(admin: Admin, group_id: str) -> GroupDescription:
    """The group. Raises GROUP_ID_NOT_FOUND, naming the nearest.

    Of a group of the consumer protocol (KIP-848) only the state is told.
    """
    listing = await listed_group(admin, group_id)
    if listing.kind.lower() == SHARE:
        return await admin.share_groups.describe(group_id)
    if not is_classic(listing):
        return GroupDescription(group_id, listing.state, listing.protocol_type, "", -1, ())
    (description,) = await admin.groups.describe([group_id])
    return description


def require_idle(description: GroupDescription, doing: str) -> None:
    """Raise NON_EMPTY_GROUP, naming the members, while the group has any."""
    if description.state in _AT_REST and not description.members:
        return
    count = len(description.members)
    names = ", ".join(sorted({f"{one.client_id} at {one.host}" for one in description.members}))
    who = f", {count} member{'s' if count != 1 else ''}: {names}" if count else ""
    raise OttlaError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {description.group_id!r} is active ({description.state}{who}); stop its consumers "
        f"to {doing} it. One that crashed counts as a member until its session times out",
    )
