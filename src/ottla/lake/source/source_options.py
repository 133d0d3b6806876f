"""The options of the data source `ottla`, in one table. Pure.

They have the names of Spark's own Kafka connector, with a few additions.
"""
# ruff: noqa: RUF009  # `_option` declares a field, as `field` does.

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

from ottla.base import quantities
from ottla.base.clock import local_now
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import EARLIEST_OFFSET, SPLIT_BYTES, Boundary
from ottla.lake.model.schema import SOURCE_COLUMNS
from ottla.lake.source.access import (
    BOOTSTRAP,
    Brokers,
    ClientAccess,
    access_of,
    bootstrap_of,
    require_known,
)

# Offsets or times by topic and partition.
ByTopic = Mapping[str, Mapping[int, int]]

_DIGITS = re.compile("[0-9]{1,18}")

# Ignored options, which Spark adds, or which only concern Spark's own connector.
_PASSED_OVER = (
    "path",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)


@dataclass(frozen=True, slots=True)
class StreamOption:
    """An option: its name in Spark, its meaning, and the parser of its text."""

    name: str
    meaning: str
    parse: Callable[[str, str], Any]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The start or end of reading: one boundary for all topics, or one for each named topic."""

    everywhere: Boundary | None = None
    by_topic: Mapping[str, Boundary] = field(default_factory=dict)

    def strict(self) -> "Boundaries":
        """Return a copy that fails for a partition without a record at or after its time."""
        everywhere = self.everywhere and replace(self.everywhere, is_strict=True)
        return Boundaries(
            everywhere, {t: replace(b, is_strict=True) for t, b in self.by_topic.items()}
        )


LAST_LOAD = Boundaries(Boundary("last-load"))
LATEST = Boundaries(Boundary("latest"))


def _text(_name: str, text: str) -> str:
    return text


def _count(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text) or int(text) == 0:
        wrong(f"{name} is {text!r}, not a whole number above 0")
    return int(text)


def _flag(name: str, text: str) -> bool:
    return _one_of(name, text, "false", "true")


def _null_or_fail(name: str, text: str) -> bool:
    return _one_of(name, text, "fail", "null")


def _latest_or_error(name: str, text: str) -> bool:
    return _one_of(name, text, "error", "latest")


def _one_of(name: str, text: str, false: str, true: str) -> bool:
    if text.lower() not in (false, true):
        wrong(f"{name} is {text!r}, not {true} or {false}")
    return text.lower() == true


def _names(_name: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _columns(_name: str, text: str) -> tuple[str, ...]:
    columns = _names(_name, text)
    for name in columns:
        if name not in SOURCE_COLUMNS:
            wrong(f"there is no column {name!r}; the columns are {', '.join(SOURCE_COLUMNS)}")
    return columns


def _span_ms(name: str, text: str) -> int:
    found = quantities.span_ms(text)
    if found is None:
        wrong(f"{name} is {text!r}, not a span such as {quantities.SPAN_FORMS}")
    return found


def _size(name: str, text: str) -> int:
    found = quantities.size_bytes(text)
    if found is None:
        wrong(f"{name} is {text!r}, not a size such as {quantities.SIZE_FORMS}")
    return found


def _place(name: str, text: str) -> Boundaries:
    match text.lower():
        case "earliest" | "latest" | "last-load" as kind:
            return Boundaries(Boundary(kind))
    found = _by_topic(name, text, 'earliest, latest, last-load or {"TOPIC": {"PARTITION": OFFSET}}')
    return Boundaries(by_topic={t: Boundary("offsets", offsets=own) for t, own in found.items()})


def _time(name: str, text: str) -> Boundaries:
    moment = quantities.moment_ms(f"@{text}" if _DIGITS.fullmatch(text) else text, local_now())
    if moment is None:
        wrong(f"{name} is {text!r}, not milliseconds since 1970 or {quantities.MOMENT_FORMS}")
    return Boundaries(Boundary("timestamp", timestamp_ms=moment))


def _times(name: str, text: str) -> Boundaries:
    found = _by_topic(name, text, '{"TOPIC": {"PARTITION": MILLISECONDS}}', least=0)
    return Boundaries(by_topic={t: Boundary("times", times=own) for t, own in found.items()})


def _by_topic(name: str, text: str, form: str, least: int = EARLIEST_OFFSET) -> ByTopic:
    try:
        return {
            topic: {_partition(p): _whole(number, least) for p, number in own.items()}
            for topic, own in json.loads(text).items()
        }
    except (ValueError, AttributeError, RecursionError):
        wrong(f"{name} is {text!r}, not {form}")


def _assigned(name: str, text: str) -> Mapping[str, frozenset[int]]:
    try:
        return {
            topic: frozenset(_whole(number) for number in _list(own))
            for topic, own in json.loads(text).items()
        }
    except (ValueError, AttributeError, RecursionError):
        wrong(f'{name} is {text!r}, not {{"TOPIC": [PARTITION, PARTITION]}}')


def _whole(found: object, least: int = 0) -> int:
    """Return an integer of JSON. Raises ValueError for anything else, such as true or 1.9."""
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found < 1 << 63:
        raise ValueError(found)
    return found


def _partition(key: str) -> int:
    """Return the partition number in a key of JSON. Raises ValueError."""
    if not _DIGITS.fullmatch(key):
        raise ValueError(key)
    return int(key)


def _list(found: object) -> list[object]:
    """Return a list of JSON. Raises ValueError."""
    if not isinstance(found, list):
        raise ValueError(found)
    return found


def _option(
    name: str, meaning: str, parse: Callable[[str, str], Any], default: str | None = None
) -> Any:
    return field(metadata={"option": StreamOption(name, meaning, parse, default)})


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The parsed options. Exactly one of `topics`, `topic_pattern` and `assigned` is given.

    `start` and `end` also contain boundaries that are given as times.
    """

    topics: tuple[str, ...] | None = _option(
        "subscribe", "topics to read, separated by commas", _names
    )
    topic_pattern: str | None = _option(
        "subscribePattern",
        "a regular expression (RE2) for whole names of topics; streams also find later topics",
        _text,
    )
    assigned: Mapping[str, frozenset[int]] | None = _option(
        "assign", 'partitions to read: `{"TOPIC": [0, 1]}`', _assigned
    )
    bootstrap: str = _option(
        BOOTSTRAP, "`host:port,…` of Ottla or Apache Kafka", _text, "localhost:9092"
    )
    access: ClientAccess = _option(
        "config",
        "a file of settings of Kafka's clients, for TLS and logins (default: OTTLA_CONFIG); "
        "options `kafka.…` overrule it",
        _text,
    )
    start: Boundaries = _option(
        "startingOffsets",
        'earliest (default of a batch), latest (of a stream), `{"TOPIC": {"0": 23, "1": -2}}` (-2 '
        "earliest, -1 latest) or last-load",
        _place,
    )
    end: Boundaries = _option("endingOffsets", "likewise; a stream has none", _place, "latest")
    start_time: Boundaries | None = _option(
        "startingTimestamp",
        "instead of offsets: start at the first record at or after a time, in milliseconds or "
        "like 10m, 2024-01-31",
        _time,
    )
    end_time: Boundaries | None = _option("endingTimestamp", "likewise; a stream has none", _time)
    start_times: Boundaries | None = _option(
        "startingOffsetsByTimestamp",
        'the same for each partition: `{"TOPIC": {"0": MILLISECONDS}}`',
        _times,
    )
    end_times: Boundaries | None = _option(
        "endingOffsetsByTimestamp", "likewise; a stream has none", _times
    )
    latest_without_time: bool = _option(
        "startingOffsetsByTimestampStrategy",
        "if a partition has no record at or after the time: error, or latest",
        _latest_or_error,
        "error",
    )
    table: str | None = _option("table", "the table for `last-load`", _text)
    headers: bool = _option("includeHeaders", "whether there is a column `headers`", _flag, "false")
    columns: tuple[str, ...] = _option(
        "columns",
        "columns to read, separated by commas; fewer columns mean less data for the JVM",
        _columns,
    )
    bytes_per_task: int = _option(
        "bytesPerTask", "about the most bytes of a log that one task reads", _size, str(SPLIT_BYTES)
    )
    offsets_per_task: int | None = _option(
        "maxRecordsPerPartition",
        "the most offsets that one task reads; if set, small ranges do not share a task",
        _count,
    )
    tasks_min: int | None = _option(
        "minPartitions",
        "the least number of tasks; if set, small ranges do not share a task",
        _count,
    )
    fail_on_data_loss: bool = _option(
        "failOnDataLoss",
        "fail if records were deleted since the last load, batch or plan",
        _flag,
        "true",
    )
    null_bad_timestamps: bool = _option(
        "onBadTimestamp",
        "a timestamp that Spark's type cannot hold: fail, or null",
        _null_or_fail,
        "fail",
    )
    skip_unreadable: bool = _option(
        "skipUnreadable",
        "leave out batches that cannot be read, with a warning in the task's log",
        _flag,
        "false",
    )
    records_max: int | None = _option(
        "maxOffsetsPerTrigger", "stream: the most offsets of one micro-batch (Spark 4.2)", _count
    )
    bytes_max: int | None = _option(
        "maxBytesPerTrigger",
        "stream: about the most bytes of the logs in one micro-batch (Spark 4.2)",
        _size,
    )
    records_min: int | None = _option(
        "minOffsetsPerTrigger",
        "stream: wait until there are this many new offsets (Spark 4.2)",
        _count,
    )
    bytes_min: int | None = _option(
        "minBytesPerTrigger",
        "stream: wait until there are about this many new bytes in the logs (Spark 4.2)",
        _size,
    )
    delay_max_ms: int = _option(
        "maxTriggerDelay",
        "stream: the longest wait for `min…` after the last micro-batch, like 10s or 5m",
        _span_ms,
        "15m",
    )

    @property
    def brokers(self) -> Brokers:
        """Return the cluster, with the settings of its clients."""
        return Brokers(self.bootstrap, self.access)

    @property
    def has_limits(self) -> bool:
        """Return whether a micro-batch has a limit or a minimum of records or bytes."""
        limits = (self.records_max, self.bytes_max, self.records_min, self.bytes_min)
        return any(limit is not None for limit in limits)


_BY_FIELD: Mapping[str, StreamOption] = {
    one.name: one.metadata["option"] for one in fields(StreamOptions)
}
OPTIONS = tuple(_BY_FIELD.values())


def parse_options(options: Mapping[str, str], *, start: str = "earliest") -> StreamOptions:
    """Parse the options. Raises OttlaError for an unknown name or a wrong value.

    Names are compared without case, because Spark does not keep it. `start` is the default start.
    """
    given = {name.lower(): value for name, value in options.items()}
    require_known(given, [option.name for option in OPTIONS], wrong, _PASSED_OVER)
    found: dict[str, Any] = {}
    for name, option in _BY_FIELD.items():
        text = given.get(option.name.lower(), option.default)
        found[name] = None if text is None else option.parse(option.name, text)
    found["bootstrap"], found["access"] = bootstrap_of(given), access_of(given)
    if found["access"].settings.get("isolation.level") == "read_uncommitted":
        wrong("records of open and aborted transactions are not read: leave out isolation.level")
    found["columns"] = found["columns"] or tuple(
        name for name in SOURCE_COLUMNS if found["headers"] or name != "headers"
    )
    # As in Spark's connector, a time for all partitions overrides times by partition.
    by_time = found["start_time"] or found["start_times"]
    if by_time and not found["latest_without_time"]:
        by_time = by_time.strict()
    found["start"] = by_time or found["start"] or _place("startingOffsets", start)
    found["end"] = found["end_time"] or found["end_times"] or found["end"]
    parsed = StreamOptions(**found)
    chosen = [parsed.topics, parsed.topic_pattern, parsed.assigned]
    if sum(bool(choice) for choice in chosen) != 1:
        wrong('which topic? Add .option("subscribe", TOPIC), or one of subscribePattern and assign')
    if parsed.table is None and LAST_LOAD in (parsed.start, parsed.end):
        wrong('last-load of which table? Add .option("table", DIR)')
    return parsed


def wrong(what: str) -> NoReturn:
    """Raise the OttlaError for wrong options."""
    raise OttlaError(ErrorCode.INVALID_REQUEST, f"data source ottla: {what}")
