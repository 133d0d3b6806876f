"""What a client sends can't forge a log line."""

import logging

from ottla.base.log_lines import OneLineFormatter


def formatted(message: str, *args: object) -> str:
    record = logging.LogRecord("ottla", logging.INFO, __file__, 1, message, args, None)
    return OneLineFormatter("%(levelname)s %(message)s").format(record)


def test_control_characters_are_escaped() -> None:
    """Line breaks, NUL and terminal sequences of a name show as what they are."""
    told = formatted("topic %s", "é\0\x1b[31m\nERROR all is lost")

    assert told == r"INFO topic é\x00\x1b[31m\nERROR all is lost"


def test_plain_text_stays() -> None:
    assert formatted("topic %s", "flüge-2013") == "INFO topic flüge-2013"


def test_a_line_has_an_end() -> None:
    """A client may put a hundred megabytes into a name."""
    line = formatted("x" * 30_000 + "\n")
    assert line == f"INFO {'x' * 19_995}\u2026 (30,006 characters)"
