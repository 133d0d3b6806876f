"""One log line for each event, whatever bytes a client put into a name."""

import logging


class OneLineFormatter(logging.Formatter):
    """A formatter whose messages hold no line breaks and no control characters.

    Unprintable characters are escaped as in Python, so that no client can forge a line or
    control a terminal. Tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # The library's name.
        text = super().formatMessage(record)
        if text.isprintable():
            return text
        return "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
            for letter in text
        )


def log_to_stderr(level: int, layout: str) -> None:
    """Have the process log to standard error, a line in `layout` (logging's %-style) each."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLineFormatter(layout))
    logging.basicConfig(level=level, handlers=[handler])
