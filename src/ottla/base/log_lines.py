"""Log lines: one line for each event, and few lines for many equal events."""

import logging
from collections.abc import Hashable

# A client may send a name of a hundred megabytes.
_CHARACTERS_MAX = 20_000


class OneLineFormatter(logging.Formatter):
    """A formatter whose messages have no line breaks or control characters.

    Unprintable characters are escaped as in Python, so that no client can forge a line or
    control a terminal. Tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # The library's name.
        text = super().formatMessage(record)
        if len(text) > _CHARACTERS_MAX:
            text = f"{text[:_CHARACTERS_MAX]}… ({len(text):,} characters)"
        if text.isprintable():
            return text
        return "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
            for letter in text
        )


def log_to_stderr(level: int, layout: str) -> None:
    """Make the process log to standard error; `layout` is logging's %-style format."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLineFormatter(layout))
    logging.basicConfig(level=level, handlers=[handler])


# Kinds remembered; the one reported longest ago is dropped for a new one.
_KINDS_MAX = 1_000


class Seldom:
    """Limits how often an event is reported, and counts the omitted ones.

    Times are milliseconds of any clock.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        # By kind, when the next event may be reported and how many were omitted since; in the order
        # of reporting.
        self._kinds: dict[Hashable, tuple[int, int]] = {}

    def admit(self, kind: Hashable, now_ms: int, weight: int = 1) -> int | None:
        """Return None to omit this event, else how many of its kind were omitted before it.

        An omitted event counts as `weight` events.
        """
        until_ms, held_back = self._kinds.get(kind, (now_ms, 0))
        if now_ms < until_ms:
            self._kinds[kind] = until_ms, held_back + weight
            return None
        self._kinds.pop(kind, None)
        while len(self._kinds) >= _KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now_ms + self._interval_ms, 0
        return held_back
