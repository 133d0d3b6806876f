"""What a client sends can't forge a log line."""

import json
import logging
import sys
from datetime import datetime

from ottla.base.log_lines import JsonFormatter, OneLineFormatter


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


def test_a_time_has_its_zone() -> None:
    record = logging.LogRecord("ottla", logging.INFO, __file__, 1, "x", (), None)
    time, _, rest = OneLineFormatter("%(asctime)s|%(message)s").format(record).partition("|")
    assert rest == "x"
    assert datetime.fromisoformat(time).utcoffset() is not None
    assert abs(datetime.fromisoformat(time).timestamp() - record.created) < 0.001


def test_json_is_one_line_whatever_is_logged() -> None:
    """Names of clients cannot forge one, and an exception is in its own field."""
    try:
        raise ValueError("no\nway")
    except ValueError:
        failure = sys.exc_info()
    name = '"}\n{"level": "ERROR"\ud800'
    record = logging.LogRecord("ottla.x", logging.WARNING, __file__, 1, "of %s", (name,), failure)
    line = JsonFormatter(7).format(record)
    assert "\n" not in line
    read = json.loads(line)
    assert (read["level"], read["logger"], read["broker"]) == ("WARNING", "ottla.x", 7)
    assert read["message"] == f"of {name}"
    assert "ValueError: no\nway" in read["exception"]
    assert datetime.fromisoformat(read["time"]).utcoffset() is not None


def test_a_json_line_has_an_end() -> None:
    record = logging.LogRecord("o", logging.INFO, __file__, 1, "x" * 10_000_000, (), None)
    line = json.loads(JsonFormatter(None).format(record))
    assert len(line["message"]) < 20_100
    assert "broker" not in line
