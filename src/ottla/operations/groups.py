"""What has to be true of a group before it is changed or deleted."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.client.admin import Admin
from ottla.client.admin.groups import GroupDescription
from ottla.diagnosis.groups import described_group

_AT_REST = ("Empty", "Dead")


async def require_all_idle(admin: Admin, group_ids: Iterable[str], doing: str) -> None:
    """Raise GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP for the first group that cannot be changed."""
    for group_id in group_ids:
        require_idle(await described_group(admin, group_id), doing)


def require_idle(description: GroupDescription, doing: str) -> None:
    """Raise NON_EMPTY_GROUP, naming the members, while the group has any."""
    if description.state in _AT_REST and not description.members:
        return
    count = len(description.members)
    names = ", ".join(sorted({f"{one.client_id} at {one.host}" for one in description.members}))
    members = f", {counted(count, 'member')}: {names}" if count else ""
    raise OttlaError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {description.group_id!r} is active ({description.state}{members}); stop its "
        f"consumers to {doing} it. One that crashed counts as a member until its session times out",
    )
