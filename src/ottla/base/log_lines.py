"""Log lines: one line for each event, and few lines for many equal events."""

import json
import logging
from collections.abc import Hashable, Iterator
from datetime import datetime

# A client may send a name of a hundred megabytes.
_CHARACTERS_MAX = 20_000


class OneLineFormatter(logging.Formatter):
    """A formatter whose messages have no line breaks or control characters.

    Unprintable characters are escaped as in Python, so that no client can forge a line or
    control a terminal. Tracebacks keep their lines.
    """

    def formatTime(  # noqa: N802  # The library's name.
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """Return the local time with its zone, as ISO 8601."""
        assert datefmt is None
        return _iso(record.created, " ")

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


class JsonFormatter(logging.Formatter):
    """A formatter for programs: one JSON object for each line.

    It has time, level, logger and message; `broker` if it is given; `exception` if there is one.
    """

    def __init__(self, broker_id: int | None) -> None:
        super().__init__()
        self._broker = {} if broker_id is None else {"broker": broker_id}

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if len(message) > _CHARACTERS_MAX:
            message = f"{message[:_CHARACTERS_MAX]}… ({len(message):,} characters)"
        line: dict[str, object] = {
            "time": _iso(record.created, "T"),
            "level": record.levelname,
            "logger": record.name,
            **self._broker,
            "message": message,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _iso(seconds: float, separator: str) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(separator, "milliseconds")


def log_as_json(broker_id: int | None = None) -> None:
    """Make all lines of the process JSON from now on, with the id of its broker."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter(broker_id))


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

    def ended(self, now_ms: int) -> Iterator[tuple[Hashable, int]]:
        """Return the kinds whose interval is over, with the omitted events that no line counts."""
        for kind, (until_ms, held_back) in list(self._kinds.items()):
            if now_ms >= until_ms:
                del self._kinds[kind]
                if held_back:
                    yield kind, held_back
