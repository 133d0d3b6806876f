"""Why a group rebalanced."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin
from ottla.client.admin.groups import GroupDescription
from ottla.client.admin.rebalances import RebalanceStory
from ottla.wire.messages.describe_rebalances import DescribedRebalance


@dataclass(frozen=True, slots=True)
class GroupRebalances:
    """A group's state, and its rebalances that brokers remember."""

    group: GroupDescription
    story: RebalanceStory


async def rebalances_of(admin: Admin, group_id: str) -> GroupRebalances:
    """Get a group's rebalances.

    Raises OttlaError GROUP_ID_NOT_FOUND, and UnsupportedByBroker if no broker is Ottla.
    """
    group = await admin.groups.describe(group_id)
    if group.state == "Dead":
        raise OttlaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"no such group: {group_id}; `ottla group list` names those there are",
        )
    return GroupRebalances(group, await admin.rebalances.of(group_id))


def first_cause(one: DescribedRebalance) -> str | None:
    """The first cause with its member, and the number of other causes; None without causes."""
    if not one.causes:
        return None
    first = one.causes[0]
    name = first.instance_id or first.client_id or first.member_id
    more = len(one.causes) - 1 + one.causes_omitted
    words = f"{name} {first.kind}" if name else first.kind
    return f"{words} (and {more} more)" if more else words
