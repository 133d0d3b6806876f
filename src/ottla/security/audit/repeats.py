"""Counts repeated events, so that a flood neither fills the disk nor hides other clients. Pure.

A client is a principal at an address (for IPv6 a /64); in a failed login, the principal is the
claimed user, if that exists. Each client has its own budget. The first event of a kind becomes a
line at once; similar ones in the same window become one line at its end: "1,532 more in 10 s", with
the details of the last one. If a client has too many kinds, such as many topic names, or its lines
have too many bytes, they are counted together by event, outcome, API and error. While a client
repeats itself, each of its windows is twice as long as the one before, up to ten minutes.

All addresses of a principal share a budget, too, so that a principal gains little by using many
addresses. When this budget is used up, its events are counted without their addresses.

Completed changes are never counted here: each is a line. A client that uses up its own or its
principal's budget of bytes waits before its next change; `wait_ms` says how long.
"""

from typing import Any

from ottla.base.fairness import counted_address
from ottla.security.audit.chain import Event
from ottla.security.principal import ANONYMOUS

# Events of one kind are equal in all these fields; `_GROUP` has the fields used if kinds are
# counted together.
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
_GROUP = ("event", "outcome", "principal", "host", "api", "error", "user")
# The fields for events that are counted without their addresses.
_GROUP_OF_PRINCIPAL = tuple(name for name in _GROUP if name != "host")
_WINDOW_MS = 10_000
_WINDOW_MS_MAX = 600_000
# The most kinds of one client, and of all clients. At the second limit all windows end, so that
# memory stays bounded however many clients there are.
_KINDS_MAX = 50
_HELD_MAX = 20_000
_KINDS_OF_PRINCIPAL = 2_000
# The budgets for the lines of one client and of one principal. At this rate, 1 GiB of lines takes
# nine hours.
_BYTES_AT_ONCE = 4 << 20
_BYTES_AT_ONCE_OF_PRINCIPAL = 8 << 20
_BYTES_PER_S = 32 << 10
# Clients that have not logged in count as this many principals.
_ANONYMOUS = 4
_Key = tuple[Any, ...]


class _Counted:
    """An event already logged, the number of similar ones since, and the last one's details."""

    __slots__ = ("count", "detail", "event")

    def __init__(self, event: Event, names: tuple[str, ...]) -> None:
        self.event = {name: event[name] for name in names if name in event}
        self.count = 0
        self.detail: object = None

    def line(self, seconds: int) -> Event:
        # The details of the last event, because the last change determines the current value.
        last = {} if self.detail is None else {"detail": self.detail}
        return {**self.event, **last, "more": self.count, "seconds": seconds}


class _Budget:
    """The bytes of logged lines; the count decreases with time."""

    __slots__ = ("_as_of_ms", "_at_once", "_bytes", "_per_s")

    def __init__(self, at_once: int, per_s: int) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._bytes = 0.0
        self._as_of_ms = 0

    def charge(self, size: int, now_ms: int) -> None:
        self._bytes, self._as_of_ms = self._owed(now_ms) + size, now_ms

    def is_paid(self, now_ms: int) -> bool:
        return not self._owed(now_ms)

    def has_room(self, now_ms: int) -> bool:
        return self._owed(now_ms) < self._at_once

    def wait_ms(self, now_ms: int) -> int:
        return max(0, round((self._owed(now_ms) - self._at_once) * 1000 / self._per_s))

    def _owed(self, now_ms: int) -> float:
        return max(0.0, self._bytes - (now_ms - self._as_of_ms) * self._per_s / 1000)


class _Principal:
    """The budget and counts that all addresses of one principal share."""

    __slots__ = ("budget", "held", "kinds_max")

    def __init__(self, name: str) -> None:
        times = _ANONYMOUS if name == str(ANONYMOUS) else 1
        self.budget = _Budget(times * _BYTES_AT_ONCE_OF_PRINCIPAL, times * _BYTES_PER_S)
        self.kinds_max = times * _KINDS_OF_PRINCIPAL
        # The number of kinds of its clients.
        self.held = 0

    def has_room(self, now_ms: int) -> bool:
        return self.held < self.kinds_max and self.budget.has_room(now_ms)


class _Client:
    """The window of one client, or of all addresses of a principal beyond its budget."""

    __slots__ = ("began_ms", "budget", "groups", "kinds", "window_ms")

    def __init__(self, now_ms: int) -> None:
        self.window_ms = _WINDOW_MS
        self.began_ms = now_ms
        self.kinds: dict[_Key, _Counted] = {}
        self.groups: dict[_Key, _Counted] = {}
        self.budget = _Budget(_BYTES_AT_ONCE, _BYTES_PER_S)

    @property
    def ends_ms(self) -> int:
        return self.began_ms + self.window_ms

    def count_group(self, event: Event, names: tuple[str, ...], count: int = 1) -> None:
        self.groups.setdefault(_key(event, names), _Counted(event, names)).count += count

    def lines(self, now_ms: int) -> list[Event]:
        seconds = max(1, round((now_ms - self.began_ms) / 1000))
        counted = [*self.kinds.values(), *self.groups.values()]
        return [each.line(seconds) for each in counted if each.count]

    def begin(self, now_ms: int, *, repeats: bool) -> None:
        self.began_ms = now_ms
        self.window_ms = min(2 * self.window_ms, _WINDOW_MS_MAX) if repeats else _WINDOW_MS
        self.kinds, self.groups = {}, {}


class Repeats:
    """Decides which events become lines. Times are milliseconds of a clock that never goes back."""

    def __init__(self) -> None:
        # By principal and address. The address None has the events of a principal beyond its
        # budget, which are counted without their addresses.
        self._clients: dict[_Key, _Client] = {}
        self._principals: dict[str, _Principal] = {}
        # The number of kinds of all clients.
        self._held = 0
        # No window ends before this time.
        self._ends_ms: int | None = None

    @property
    def ends_ms(self) -> int | None:
        """Return the time to call `end`; None if nothing is counted."""
        return self._ends_ms

    @property
    def is_full(self) -> bool:
        """Whether `end_all` must be called."""
        return max(self._held, len(self._clients)) >= _HELD_MAX

    def wrote(self, event: Event, size: int, now_ms: int) -> None:
        """Note the size of the line of an event."""
        self._client(_client_key(event), now_ms).budget.charge(size, now_ms)
        self.wrote_count(event, size, now_ms)

    def wrote_count(self, event: Event, size: int, now_ms: int) -> None:
        """Note the size of a line that `end` or `end_all` returned."""
        self._principal(_name(event)).budget.charge(size, now_ms)

    def wait_ms(self, principal: str, host: str, now_ms: int) -> int:
        """Return how long a client must wait before its next change."""
        holders = (
            self._principals.get(principal),
            self._clients.get((principal, counted_address(host))),
        )
        return max(each.budget.wait_ms(now_ms) if each else 0 for each in holders)

    def admit(self, event: Event, now_ms: int) -> bool:
        """Whether the event becomes a line now, see `wrote`; otherwise it is counted."""
        key, kind = _client_key(event), (*_key(event, _KIND), _topic(event))
        known = self._clients.get(key)
        held = None if known is None else known.kinds.get(kind)
        if held is not None:
            held.detail = event.get("detail")
            held.count += 1
            return False
        principal = self._principal(_name(event))
        if not principal.has_room(now_ms):
            self._client((_name(event), None), now_ms).count_group(event, _GROUP_OF_PRINCIPAL)
            return False
        client = self._client(key, now_ms)
        if len(client.kinds) >= _KINDS_MAX or not client.budget.has_room(now_ms):
            client.count_group(event, _GROUP)
            return False
        client.kinds[kind] = _Counted(event, _KIND)
        principal.held += 1
        self._held += 1
        return True

    def count(self, event: Event, count: int, now_ms: int) -> None:
        """Count several events together with others of the same event, outcome, API and error."""
        if self._principal(_name(event)).has_room(now_ms):
            self._client(_client_key(event), now_ms).count_group(event, _GROUP, count)
        else:
            rest = self._client((_name(event), None), now_ms)
            rest.count_group(event, _GROUP_OF_PRINCIPAL, count)

    def end(self, now_ms: int) -> list[Event]:
        """End the expired windows; return a line for each repeated kind."""
        return self._end(
            now_ms, [key for key, each in self._clients.items() if each.ends_ms <= now_ms]
        )

    def end_all(self, now_ms: int) -> list[Event]:
        """End all windows, and forget all clients, but not the bytes of their principals."""
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
            self._principal(key[0]).held -= len(client.kinds)
            client.begin(now_ms, repeats=bool(own))
            if not own and client.budget.is_paid(now_ms):
                del self._clients[key]
        self._principals = {
            name: each
            for name, each in self._principals.items()
            if each.held or not each.budget.is_paid(now_ms)
        }
        self._ends_ms = min((each.ends_ms for each in self._clients.values()), default=None)
        return lines

    def _client(self, key: _Key, now_ms: int) -> _Client:
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client(now_ms)
            self._ends_ms = min(client.ends_ms, self._ends_ms or client.ends_ms)
        return client

    def _principal(self, name: str) -> _Principal:
        principal = self._principals.get(name)
        if principal is None:
            principal = self._principals[name] = _Principal(name)
        return principal


def _name(event: Event) -> str:
    return str(event.get("user") or event["principal"])


def _client_key(event: Event) -> _Key:
    return _name(event), counted_address(event["host"])


def _key(event: Event, names: tuple[str, ...]) -> _Key:
    return tuple(event.get(name) for name in names)


def _topic(event: Event) -> object:
    """Return the topic of an offset commit; commits to other topics must not hide a rewind."""
    detail = event.get("detail")
    return detail.get("topic") if isinstance(detail, dict) else None
