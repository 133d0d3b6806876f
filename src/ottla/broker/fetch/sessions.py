"""Fetch sessions (KIP-227): they keep a fetcher's last request, so that it sends only changes.

Pure: time is an argument. Each request of a session carries an epoch that counts its requests, so
that a lost answer is noticed.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
_EPOCH_MAX = 2**31 - 1


class PartitionKey(NamedTuple):
    """The key of a partition in a session: its index, and the topic's name or (from v13) id."""

    topic: str | UUID
    partition: int


class WantedPartition(NamedTuple):
    """The fields of a fetch request for one partition."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int


@dataclass(slots=True)
class Remembered:
    """A partition in a session: its last requested fields, and its last answered offsets."""

    wanted: WantedPartition
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass(slots=True)
class FetchSession:
    """One fetch session.

    Invariant: the next request must carry `epoch`.
    """

    id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[PartitionKey, Remembered] = field(default_factory=dict)

    def bump(self) -> None:
        """Set the epoch of the next request; the epoch after the greatest one is 1."""
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1


class FetchSessions:
    """The fetch sessions of a broker, at most `slots`; new sessions replace idle ones."""

    def __init__(self, slots: int, eviction_ms: int, rng: random.Random) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._rng = rng
        # In the order of last use.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self,
        partitions: Iterable[tuple[PartitionKey, WantedPartition]],
        *,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """Open a session for a full request; return None if there is no room."""
        asked = {key: Remembered(wanted) for key, wanted in partitions}
        if not asked or not self._make_room(len(asked), now_ms):
            return None
        session_id = self._free_id()
        session = FetchSession(session_id, uses_topic_ids, now_ms, now_ms, partitions=asked)
        self._sessions[session_id] = session
        return session

    def close(self, session_id: int) -> None:
        """Close a session; an unknown id is ignored."""
        self._sessions.pop(session_id, None)

    def resume(
        self, session_id: int, epoch: int, *, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession:
        """Return the session of an incremental request; increase its epoch. Raises OttlaError."""
        session = self._sessions.get(session_id)
        if session is None:
            raise OttlaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}"
            )
        if session.epoch != epoch:
            raise OttlaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session_id} expects epoch {session.epoch}, not {epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise OttlaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session_id} began with the other way of naming topics",
            )
        self.use(session, now_ms)
        return session

    def find(self, session_id: int) -> FetchSession | None:
        """Return the session with that id, or None."""
        return self._sessions.get(session_id)

    def expecting(self, session_id: int, epoch: int) -> FetchSession | None:
        """Return the session with that id if its next request must carry this epoch, else None."""
        session = self._sessions.get(session_id)
        return session if session is not None and session.epoch == epoch else None

    def use(self, session: FetchSession, now_ms: int) -> None:
        """Increase the epoch and note the time of use, for the session's next request."""
        session.bump()
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)

    def _free_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, 2**31 - 1)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        for session in self._sessions.values():
            idle = now_ms - session.used_ms > self._eviction_ms
            smaller = (
                len(session.partitions) < size and now_ms - session.created_ms > self._eviction_ms
            )
            if idle or smaller:
                del self._sessions[session.id]
                return True
        return False


def merge(
    session: FetchSession,
    changed: Iterable[tuple[PartitionKey, WantedPartition]],
    forgotten: Iterable[PartitionKey],
) -> None:
    """Apply the changes of an incremental request to its session."""
    for key in forgotten:
        session.partitions.pop(key, None)
    for key, wanted in changed:
        remembered = session.partitions.get(key)
        if remembered is None:
            session.partitions[key] = Remembered(wanted)
        else:
            remembered.wanted = wanted
