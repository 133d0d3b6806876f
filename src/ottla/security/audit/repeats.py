"""Counts events that repeat, so that a flood of denials fills no disk. Pure.

The first event of a kind is a line at once; others like it in the same window are one line at its
end: "1,532 more in 10 s", with the details of the last one. Where there are too many kinds, such as
one topic name after the other, those of one principal, address and API are counted together. While
there are repetitions, each window is twice as long as the one before, up to ten minutes.
"""

from typing import Any

from ottla.security.audit.line import Event

# In which fields events of one kind are equal, and what is equal where kinds are counted together.
_KIND = (
    "event",
    "principal",
    "host",
    "client_id",
    "api",
    "operation",
    "resource",
    "error",
    "cause",
)
_GROUP = ("event", "principal", "host", "api")
_WINDOW_MS = 10_000
_WINDOW_MS_MAX = 600_000
_KINDS_MAX = 50
_Key = tuple[Any, ...]


class _Counted:
    """An event that is a line already, how many like it are not, and the last one's details."""

    __slots__ = ("count", "detail", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.count = 0
        self.detail: object = None


class Repeats:
    """Says which events become lines. Times are milliseconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._window_ms = _WINDOW_MS
        self._began_ms = 0
        self._kinds: dict[_Key, _Counted] = {}
        self._groups: dict[_Key, _Counted] = {}
        # How many events are in no kind and no group.
        self._others = 0

    @property
    def ends_ms(self) -> int | None:
        """When `end` is to be called; None where nothing is counted."""
        return self._began_ms + self._window_ms if self._kinds else None

    def admit(self, event: Event, now_ms: int) -> bool:
        """Whether the event is a line now; else it is counted. The event is kept."""
        if not self._kinds:
            self._began_ms = now_ms
        kind = (*_key(event, _KIND), _token(event))
        held = self._kinds.get(kind)
        if held is None and len(self._kinds) < _KINDS_MAX:
            self._kinds[kind] = _Counted(event)
            return True
        if held is None:
            group = _key(event, _GROUP)
            held = self._groups.get(group)
            if held is None and len(self._groups) < _KINDS_MAX:
                self._groups[group] = _Counted(event)
                return True
        if held is None:
            self._others += 1
        else:
            held.count += 1
            held.detail = event.get("detail")
        return False

    def end(self, now_ms: int) -> list[Event]:
        """End the window: a line for each kind that was repeated."""
        seconds = max(1, round((now_ms - self._began_ms) / 1000))
        lines: list[Event] = [
            {**held.event, **_last(held), **_more(held.count, seconds)}
            for held in self._kinds.values()
            if held.count
        ]
        lines += [
            {**{name: held.event.get(name) for name in _GROUP}, **_more(held.count, seconds)}
            for held in self._groups.values()
            if held.count
        ]
        if self._others:
            lines.append({"event": "others", **_more(self._others, seconds)})
        self._window_ms = min(2 * self._window_ms, _WINDOW_MS_MAX) if lines else _WINDOW_MS
        self._kinds, self._groups, self._others = {}, {}, 0
        return lines


def _key(event: Event, names: tuple[str, ...]) -> _Key:
    return tuple(event.get(name) for name in names)


def _token(event: Event) -> object:
    """Which token was made: each is worth a line of its own, while there are few."""
    detail = event.get("detail")
    return detail.get("token") if isinstance(detail, dict) else None


def _last(held: _Counted) -> Event:
    # What a change set last is what holds.
    return {} if held.detail is None else {"detail": held.detail}


def _more(count: int, seconds: int) -> Event:
    return {"more": count, "seconds": seconds}
