"""Share sessions (KIP-932): which partitions a member fetches from this broker.

A session belongs to a member of a group. Its epoch counts its requests, so that a lost or repeated
request is detected. Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1


class MemberKey(NamedTuple):
    """A member of a group."""

    group_id: str
    member_id: str


class SessionSlot(NamedTuple):
    """A partition, by topic id."""

    topic_id: UUID
    partition: int


@dataclass(slots=True)
class ShareSession:
    """One share session. Invariant: `epoch` is the epoch that the next request must have."""

    key: MemberKey
    # The connection of the member's latest request; opaque here.
    connection: object
    epoch: int = 1
    # In the order in which a fetch reads them.
    partitions: dict[SessionSlot, None] = field(default_factory=dict)

    def merge(self, added: Iterable[SessionSlot], forgotten: Iterable[SessionSlot]) -> None:
        """Apply the partitions that a request adds and forgets."""
        for slot in forgotten:
            self.partitions.pop(slot, None)
        for slot in added:
            self.partitions.setdefault(slot)

    def rotate(self, served: Iterable[SessionSlot]) -> None:
        """Move partitions that returned records to the end, so that the next fetch reads others."""
        for slot in served:
            if slot in self.partitions:
                del self.partitions[slot]
                self.partitions[slot] = None


class ShareSessions:
    """The sessions of a broker, `limit` at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[MemberKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(list(self._sessions.values()))

    def open(self, key: MemberKey, connection: object) -> ShareSession:
        """Begin a session; it replaces an earlier one of the member.

        Raises OttlaError (SHARE_SESSION_LIMIT_REACHED).
        """
        if key not in self._sessions and len(self._sessions) >= self._limit:
            raise OttlaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"this broker has {self._limit} share sessions, as many as "
                "group.share.max.share.sessions allows",
            )
        session = self._sessions[key] = ShareSession(key, connection)
        return session

    def find(self, key: MemberKey, epoch: int) -> ShareSession:
        """Return the session of a request with `epoch`, and advance the session's epoch.

        A request with FINAL_EPOCH ends the session, so the epoch does not advance.

        Raises OttlaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise OttlaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                f"member {key.member_id} of group {key.group_id} has no share session here",
            )
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise OttlaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the share session of member {key.member_id} expects epoch {session.epoch}, "
                f"not {epoch}",
            )
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return session

    def close(self, session: ShareSession) -> bool:
        """Remove a session; False if it was removed or replaced already."""
        if self._sessions.get(session.key) is not session:
            return False
        del self._sessions[session.key]
        return True

    def of(self, key: MemberKey) -> ShareSession | None:
        """The session of a member, if it has one."""
        return self._sessions.get(key)

    def has_group(self, group_id: str) -> bool:
        """Whether any member of the group has a session."""
        return any(key.group_id == group_id for key in self._sessions)
