"""What has to be true of a group before it is changed."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin.groups import GroupDescription, GroupMember
from ottla.operations.group_offsets import require_idle


def test_a_group_is_idle_without_members() -> None:
    """Its state alone does not say it: a group of the consumer protocol tells no members."""
    require_idle(GroupDescription("audit", "Empty", "consumer", "", 1, ()), "delete")
    with pytest.raises(OttlaError, match=r"'audit' is active \(Stable\)"):
        require_idle(GroupDescription("audit", "Stable", "consumer", "", -1, ()), "delete")


def test_the_members_of_an_active_group_are_named() -> None:
    """So that a person knows which to stop."""
    members = tuple(
        GroupMember(str(number), None, name, "/10.0.0.7", ())
        for number, name in enumerate(("b", "a", "a"))
    )
    with pytest.raises(OttlaError) as refused:
        require_idle(GroupDescription("audit", "Stable", "consumer", "", 1, members), "move")
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    assert refused.value.message == (
        "group 'audit' is active (Stable, 3 members: a at /10.0.0.7, b at /10.0.0.7); stop its "
        "consumers to move it. One that crashed counts as a member until its session times out"
    )
