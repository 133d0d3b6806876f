"""Counts events that repeat, so that a flood fills no disk, and hides no other client. Pure.

A client is a principal at an address, of IPv6 a /64; in a failed login it is the user that the
login named, where there is one. Each client has a budget of its own. The first event of a kind is a
line at once; others like it in the same window are one line at its end: "1,532 more in 10 s", with
the details of the last one. Where a client has too many kinds, such as one topic name after the
other, or its lines have too many bytes, they are counted together by event, outcome and API. While
a client repeats itself, each of its windows is twice as long as the one before, up to ten minutes.

Changes that were made are never counted here: each is a line. A client that makes more than its
budget of bytes allows waits before it makes others; `wait_ms` says how long.
"""

from typing import Any

from ottla.base.addresses import counted_address
from ottla.security.audit.line import Event

# In which fields events of one kind are equal, and what is equal where kinds are counted together.
_KIND = (
    "event",
    "outcome",
    "principal",
    "host",
    "client_id",
    "api",
    "operation",
    "resource",
    "error",
    "cause",
    "user",
)
_GROUP = ("event", "outcome", "principal", "host", "api", "user")
_WINDOW_MS = 10_000
_WINDOW_MS_MAX = 600_000
# Of one client, and of all: then all windows end, so that clients without number take no memory.
_KINDS_MAX = 50
_HELD_MAX = 20_000
# The lines of one client: 1 GiB of them takes nine hours.
_BYTES_AT_ONCE = 4 << 20
_BYTES_PER_S = 32 << 10
_Key = tuple[Any, ...]


class _Counted:
    """An event that is a line already, how many like it are not, and the last one's details."""

    __slots__ = ("count", "detail", "event")

    def __init__(self, event: Event, names: tuple[str, ...]) -> None:
        self.event = {name: event[name] for name in names if name in event}
        self.count = 0
        self.detail: object = None

    def line(self, seconds: int) -> Event:
        # What a change set last is what holds.
        last = {} if self.detail is None else {"detail": self.detail}
        return {**self.event, **last, "more": self.count, "seconds": seconds}


class _Client:
    """The window of one client, and the bytes of its lines that time has not forgiven."""

    __slots__ = ("began_ms", "debt", "debt_ms", "groups", "kinds", "window_ms")

    def __init__(self, now_ms: int) -> None:
        self.window_ms = _WINDOW_MS
        self.began_ms = now_ms
        self.kinds: dict[_Key, _Counted] = {}
        self.groups: dict[_Key, _Counted] = {}
        # As of `debt_ms`.
        self.debt = 0.0
        self.debt_ms = now_ms

    @property
    def ends_ms(self) -> int:
        return self.began_ms + self.window_ms

    def debt_at(self, now_ms: int) -> float:
        return max(0.0, self.debt - (now_ms - self.debt_ms) * _BYTES_PER_S / 1000)

    def charge(self, size: int, now_ms: int) -> None:
        self.debt, self.debt_ms = self.debt_at(now_ms) + size, now_ms

    def lines(self, now_ms: int) -> list[Event]:
        seconds = max(1, round((now_ms - self.began_ms) / 1000))
        counted = [*self.kinds.values(), *self.groups.values()]
        return [each.line(seconds) for each in counted if each.count]

    def begin(self, now_ms: int, *, repeats: bool) -> None:
        self.began_ms = now_ms
        self.window_ms = min(2 * self.window_ms, _WINDOW_MS_MAX) if repeats else _WINDOW_MS
        self.kinds, self.groups = {}, {}


class Repeats:
    """Says which events become lines. Times are milliseconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._clients: dict[_Key, _Client] = {}
        # How many kinds all clients have.
        self._held = 0
        # No window ends sooner.
        self._ends_ms: int | None = None

    @property
    def ends_ms(self) -> int | None:
        """When `end` is to be called; None where nothing is counted."""
        return self._ends_ms

    @property
    def is_full(self) -> bool:
        """Whether `end_all` is to be called."""
        return max(self._held, len(self._clients)) >= _HELD_MAX

    def wrote(self, event: Event, size: int, now_ms: int) -> None:
        """An event is a line of so many bytes."""
        self._client(event, now_ms).charge(size, now_ms)

    def wait_ms(self, principal: str, host: str, now_ms: int) -> int:
        """How long a client waits before its next change."""
        client = self._clients.get((principal, counted_address(host)))
        over = 0 if client is None else client.debt_at(now_ms) - _BYTES_AT_ONCE
        return max(0, round(over * 1000 / _BYTES_PER_S))

    def admit(self, event: Event, now_ms: int) -> bool:
        """Whether the event is a line now, see `wrote`; else it is counted."""
        client = self._client(event, now_ms)
        kind = (*_key(event, _KIND), _topic(event))
        held = client.kinds.get(kind)
        is_room = len(client.kinds) < _KINDS_MAX and client.debt_at(now_ms) < _BYTES_AT_ONCE
        if held is None and is_room:
            client.kinds[kind] = _Counted(event, _KIND)
            self._held += 1
            return True
        if held is None:
            held = client.groups.setdefault(_key(event, _GROUP), _Counted(event, _GROUP))
        else:
            held.detail = event.get("detail")
        held.count += 1
        return False

    def end(self, now_ms: int) -> list[Event]:
        """End the windows that are over: a line for each kind that was repeated."""
        return self._end(
            now_ms, [key for key, each in self._clients.items() if each.ends_ms <= now_ms]
        )

    def end_all(self, now_ms: int) -> list[Event]:
        """End all windows, and forget all clients."""
        lines = self._end(now_ms, list(self._clients))
        self._clients, self._ends_ms = {}, None
        return lines

    def _end(self, now_ms: int, over: list[_Key]) -> list[Event]:
        lines: list[Event] = []
        for key in over:
            client = self._clients[key]
            own = client.lines(now_ms)
            lines += own
            self._held -= len(client.kinds)
            client.begin(now_ms, repeats=bool(own))
            if not own and not client.debt_at(now_ms):
                del self._clients[key]
        self._ends_ms = min((each.ends_ms for each in self._clients.values()), default=None)
        return lines

    def _client(self, event: Event, now_ms: int) -> _Client:
        key = event.get("user") or event["principal"], counted_address(event["host"])
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client(now_ms)
            self._ends_ms = min(client.ends_ms, self._ends_ms or client.ends_ms)
        return client


def _key(event: Event, names: tuple[str, ...]) -> _Key:
    return tuple(event.get(name) for name in names)


def _topic(event: Event) -> object:
    """The topic of a commit: a rewind of one is not hidden by commits of others."""
    detail = event.get("detail")
    return detail.get("topic") if isinstance(detail, dict) else None
