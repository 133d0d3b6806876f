"""One log line for each event, whatever bytes a client put into a name."""

import logging

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
