"""Sessions of visitors: the client with which each of them talks to the brokers, and log-ins.

A session lives in memory only. Its client logs in as its user, so the brokers' own rights decide.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable

from ottla.client import Admin
from ottla.client.connection.security import ClientConfig

# A session that was not used for so long ends; pages that refresh themselves do not count.
IDLE_S = 30 * 60
_SESSIONS_MAX = 1_000
_NOTES_MAX = 20


class VisitorSession:
    """A visitor's session. `is_ready`: it has a client, with which pages ask the brokers."""

    def __init__(self, admin: Admin | None, config: ClientConfig, now_s: float) -> None:
        self.key = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self.user = ""
        self.admin = admin
        self.config = config
        self.used_s = now_s
        self._notes: list[str] = []

    @property
    def is_ready(self) -> bool:
        return self.admin is not None

    def has_token(self, token: str) -> bool:
        """Whether a form has this session's token."""
        return hmac.compare_digest(self.token.encode(), token.encode())

    def add_notes(self, notes: Iterable[str]) -> None:
        """Keep sentences for the next page."""
        self._notes = [*self._notes, *notes][-_NOTES_MAX:]

    def take_notes(self) -> list[str]:
        """Return the sentences to show, once."""
        notes, self._notes = self._notes, []
        return notes


class Sessions:
    """All sessions. With `shared`, no visitor logs in, and all use this client."""

    def __init__(
        self, shared: Callable[[], Admin] | None, now_s: Callable[[], float], idle_s: float = IDLE_S
    ) -> None:
        self._shared = shared
        self._client: Admin | None = None
        self._now_s = now_s
        self._idle_s = idle_s
        # The least recently used first.
        self._sessions: OrderedDict[str, VisitorSession] = OrderedDict()

    def find(self, key: str, *, is_used: bool) -> VisitorSession | None:
        """Return the session with this key; None if there is none, or it has ended."""
        session = self._sessions.get(key)
        if session is not None and is_used:
            session.used_s = self._now_s()
            self._sessions.move_to_end(key)
        return session

    async def new(self) -> VisitorSession:
        """Begin a session; if there are too many, end the one that was not used for longest."""
        if self._shared is not None and self._client is None:
            self._client = self._shared()
        session = VisitorSession(self._client, None, self._now_s())
        self._sessions[session.key] = session
        if len(self._sessions) > _SESSIONS_MAX:
            waiting = (one for one in self._sessions.values() if not one.user)
            await self.end(next(waiting, session))
        return session

    async def log_in(
        self, before: VisitorSession, user: str, admin: Admin, config: ClientConfig
    ) -> VisitorSession:
        """Replace a session by one of a user, with another key and token."""
        await self.end(before)
        session = await self.new()
        session.user, session.admin, session.config = user, admin, config
        return session

    async def end(self, session: VisitorSession) -> None:
        """End a session, and close its client if that is its own."""
        self._sessions.pop(session.key, None)
        admin, session.admin = session.admin, None
        if admin is not None and admin is not self._client:
            await admin.close()

    async def end_idle(self) -> None:
        """End the sessions that were not used for long."""
        limit_s = self._now_s() - self._idle_s
        for session in list(self._sessions.values()):
            if session.used_s > limit_s:
                return
            await self.end(session)

    async def close(self) -> None:
        """End all sessions, and close the shared client."""
        for session in list(self._sessions.values()):
            await self.end(session)
        if self._client is not None:
            await self._client.close()


class Attempts:
    """Counts failed log-ins, and refuses more of them for a while.

    `within_s`: how long a failure counts. Limits are for a user at an address, and for an address.
    """

    USER_MAX = 5
    ADDRESS_MAX = 20
    WITHIN_S = 300.0
    _KEYS_MAX = 10_000

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failures: OrderedDict[tuple[str, ...], list[float]] = OrderedDict()

    def wait_s(self, address: str, user: str) -> float:
        """Return for how long no further attempt is accepted; 0 if one is."""
        limits = (((address,), self.ADDRESS_MAX), ((address, user), self.USER_MAX))
        return max(self._wait_s(key, most) for key, most in limits)

    def _wait_s(self, key: tuple[str, ...], most: int) -> float:
        limit_s = self._now_s() - self.WITHIN_S
        recent = [at_s for at_s in self._failures.get(key, ()) if at_s > limit_s]
        return recent[-most] - limit_s if len(recent) >= most else 0.0

    def succeeded(self, address: str, user: str) -> None:
        """Forget the failures of this user at this address, and the last of the address."""
        self._failures.pop((address, user), None)
        if times := self._failures.get((address,)):
            times.pop()

    def failed(self, address: str, user: str) -> None:
        """Note a failed attempt."""
        for key in ((address,), (address, user)):
            times = self._failures.setdefault(key, [])
            times.append(self._now_s())
            del times[: -self.ADDRESS_MAX]
            self._failures.move_to_end(key)
        while len(self._failures) > self._KEYS_MAX:
            self._failures.popitem(last=False)
