"""Limits the groups of a broker, in total and per owner. Pure: time is an argument.

A group costs its client one request and the broker two kilobytes, kept for
offsets.retention.minutes if an offset was committed.
"""

from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.fairness import fair_share

# A name is kept with the group, in records and with each of its members.
GROUP_ID_CHARACTERS_MAX = 1024
# The least time between two searches for groups that have ended: refused clients retry often.
_LOOK_MS = 10_000


class _Owned:
    """The groups that one owner has created since this broker started."""

    __slots__ = ("groups", "looked_ms")

    def __init__(self, now_ms: int) -> None:
        self.groups: set[str] = set()
        self.looked_ms = now_ms


class GroupRoom:
    """Decides whether an owner may create a group.

    An owner is a user, or the address of a client without a login.
    """

    def __init__(self, exists: Callable[[str], bool]) -> None:
        """`exists` says whether this broker has a group."""
        self._exists = exists
        self._owners: dict[str, _Owned] = {}

    def begin(self, owner: str, group_id: str, count: int, most: int, now_ms: int) -> None:
        """Note a new group of `owner`, in addition to the `count` groups that the broker has.

        `most` is the setting group.max.count.
        Raises OttlaError, with cause and remedy: INVALID_GROUP_ID, GROUP_MAX_SIZE_REACHED.
        """
        if len(group_id) > GROUP_ID_CHARACTERS_MAX:
            raise OttlaError(
                ErrorCode.INVALID_GROUP_ID,
                f"the name of a new group has {len(group_id)} characters, and"
                f" {GROUP_ID_CHARACTERS_MAX} are allowed: set a shorter group.id in the client",
            )
        if count >= most:
            raise _full(
                f"this broker coordinates {count} groups, as many as group.max.count allows"
            )
        owned = self._owners.get(owner)
        if owned is None:
            if len(self._owners) > most:
                self._owners.clear()
            owned = self._owners[owner] = _Owned(now_ms)
        share = fair_share(most)
        if len(owned.groups) >= share and now_ms - owned.looked_ms >= _LOOK_MS:
            owned.groups = {each for each in owned.groups if self._exists(each)}
            owned.looked_ms = now_ms
        if len(owned.groups) >= share:
            raise _full(
                f"{owner} has begun {share} groups of this broker, a quarter of group.max.count"
            )
        owned.groups.add(group_id)


def _full(cause: str) -> OttlaError:
    return OttlaError(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"{cause}: delete those that are not used (`ottla group delete`), let users READ only"
        " groups of their own prefix (`ottla acl`), or raise the setting",
    )
