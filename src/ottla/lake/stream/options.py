"""The options of the data source `ottla`: one table says what there is. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ottla.base import units
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.access import ClientAccess, access_of, bootstrap_of, is_of_access
from ottla.lake.schema import ROW_SCHEMA
from ottla.lake.splitting import SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name for Spark, the field it is read into, how its text is read."""

    name: str
    field: str
    meaning: str
    parse: Callable[[str, str], Any]
    default: str | None = None


def _text(_name: str, text: str) -> str:
    return text


def _count(name: str, text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        wrong(f"{name} is {text!r}, not a number of {_unit(name)} above 0")
    return int(text)


def _unit(name: str) -> str:
    return next((unit for unit in ("offsets", "records") if unit in name.lower()), "")


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        wrong(f"{name} is {text!r}, not true or false")
    return text.lower() == "true"


def _null_or_fail(name: str, text: str) -> bool:
    if text.lower() not in ("fail", "null"):
        wrong(f"{name} is {text!r}, not fail or null")
    return text.lower() == "null"


def _names(_name: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _columns(_name: str, text: str) -> tuple[str, ...]:
    columns = _names(_name, text)
    for name in columns:
        if name not in ROW_SCHEMA.names:
            wrong(f"there is no column {name!r}; the columns are {ROW_SCHEMA.names}")
    return columns


def _span_ms(name: str, text: str) -> int:
    found = units.span_ms(text)
    if found is None:
        wrong(f"{name} is {text!r}, not a span such as {units.SPAN_FORMS}")
    return found


def _size(name: str, text: str) -> int:
    found = units.size_bytes(text)
    if found is None:
        wrong(f"{name} is {text!r}, not a size such as {units.SIZE_FORMS}")
    return found


OPTIONS = (
    Option("topic", "topic", "the topic to read", _text),
    Option("topics", "topics", "topics to read, separated by commas", _names),
    Option(
        "topicPattern",
        "topic_pattern",
        "a regular expression (RE2) that whole names of topics match; a stream finds later ones",
        _text,
    ),
    Option(
        "bootstrap",
        "bootstrap",
        "`host:port,…` of Ottla or Apache Kafka; also `kafka.bootstrap.servers`",
        _text,
        "localhost:9092",
    ),
    Option(
        "config",
        "access",
        "a file of settings of Kafka's clients, for TLS and logins (default: OTTLA_CONFIG); "
        "options `kafka.security.protocol`, `kafka.sasl.…` and `kafka.ssl.…` overrule it",
        _text,
    ),
    Option(
        "start",
        "start",
        "earliest, latest, a time (10m, 2024-01-31, @MILLISECONDS), PARTITION:OFFSET,… (of "
        "several topics: TOPIC-PARTITION:OFFSET,…) or last-load",
        _text,
        "earliest",
    ),
    Option("end", "end", "likewise; a stream has none", _text, "latest"),
    Option("table", "table", "the folder whose last load `last-load` means", _text),
    Option(
        "columns",
        "columns",
        "a comma-separated choice of columns: fewer cross to the JVM",
        _columns,
        ",".join(ROW_SCHEMA.names),
    ),
    Option(
        "bytesPerTask",
        "bytes_per_task",
        "about how many bytes of a log one task reads at most",
        _size,
        str(SPLIT_BYTES),
    ),
    Option(
        "offsetsPerTask",
        "offsets_per_task",
        "how many offsets one task reads at most; small ranges do not share a task then",
        _count,
    ),
    Option(
        "failOnDataLoss",
        "fail_on_data_loss",
        "fail where records were deleted since the last load, batch or plan",
        _flag,
        "true",
    ),
    Option(
        "onBadTimestamp",
        "null_bad_timestamps",
        "a timestamp that Spark's type cannot hold: fail, or null",
        _null_or_fail,
        "fail",
    ),
    Option(
        "skipUnreadable",
        "skip_unreadable",
        "leave out batches that cannot be read, with a warning in the task's log",
        _flag,
        "false",
    ),
    Option(
        "logDir",
        "log_dirs",
        "folders where a broker's log directory can be read, separated by commas: tasks read its "
        "files, where the partition is there",
        _names,
        "",
    ),
    Option(
        "maxRecordsPerTrigger",
        "records_max",
        "stream: how many offsets one micro-batch has at most (Spark 4.2)",
        _count,
    ),
    Option(
        "maxBytesPerTrigger",
        "bytes_max",
        "stream: about how many bytes of the logs it has at most (Spark 4.2)",
        _size,
    ),
    Option(
        "minRecordsPerTrigger",
        "records_min",
        "stream: wait until there are so many offsets (Spark 4.2)",
        _count,
    ),
    Option(
        "minBytesPerTrigger",
        "bytes_min",
        "stream: wait until there are about so many bytes of the logs (Spark 4.2)",
        _size,
    ),
    Option(
        "maxTriggerDelay",
        "delay_max_ms",
        "stream: wait for `min…` so long after the last micro-batch at most, like 10s or 5m",
        _span_ms,
        "15m",
    ),
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the options say. Exactly one of `topic`, `topics` and `topic_pattern` is given."""

    topic: str | None
    topics: tuple[str, ...] | None
    topic_pattern: str | None
    bootstrap: str
    access: ClientAccess
    start: str
    end: str
    table: str | None
    columns: tuple[str, ...]
    bytes_per_task: int
    offsets_per_task: int | None
    fail_on_data_loss: bool
    null_bad_timestamps: bool
    skip_unreadable: bool
    log_dirs: tuple[str, ...]
    records_max: int | None
    bytes_max: int | None
    records_min: int | None
    bytes_min: int | None
    delay_max_ms: int

    @property
    def has_limits(self) -> bool:
        """Whether a stream admits only a part of what is there."""
        limits = (self.records_max, self.bytes_max, self.records_min, self.bytes_min)
        return any(limit is not None for limit in limits)


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options (Spark does not keep their case). Raises OttlaError for wrong ones."""
    given = {name.lower(): value for name, value in options.items()}
    names = [option.name for option in OPTIONS]
    for name in given.keys() - {name.lower() for name in names} - {"path"}:
        if is_of_access(name):
            continue
        wrong(f"there is no option {name!r}; the options are {', '.join(names)}")
    fields: dict[str, Any] = {}
    for option in OPTIONS:
        text = given.get(option.name.lower(), option.default)
        fields[option.field] = None if text is None else option.parse(option.name, text)
    fields["bootstrap"], fields["access"] = bootstrap_of(given), access_of(given)
    parsed = SourceOptions(**fields)
    chosen = [parsed.topic, parsed.topics, parsed.topic_pattern]
    if sum(bool(choice) for choice in chosen) != 1:
        wrong('which topic? Add .option("topic", NAME), or one of topics and topicPattern')
    if parsed.table is None and "last-load" in (parsed.start, parsed.end):
        wrong('last-load of which table? Add .option("table", DIR)')
    return parsed


def wrong(what: str) -> NoReturn:
    """Raise the OttlaError for options that say something wrong."""
    raise OttlaError(ErrorCode.INVALID_REQUEST, f"data source ottla: {what}")
