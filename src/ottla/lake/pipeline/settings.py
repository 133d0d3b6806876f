"""A pipeline as a TOML file: source, decode, target, schedule, spark. Pure, apart from `read`.

    [source]
    topic = "flights"
    bootstrap = "localhost:9092"          # Ottla or Apache Kafka
    config = "client.properties"          # TLS and logins, in the words of Kafka's clients
    from = "earliest"                     # where the first load of a partition starts

    [target]
    table = "/lake/flights"               # or s3://…
    format = "parquet"                    # or delta, iceberg
    kind = "rows"                         # or latest, history: a changelog table

All other keys have the defaults of `ottla lake load`; `PIPELINE_KEYS` has them all. A key that is
not known is an error that names the nearest one, so that a mistyped policy is not ignored.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.secret_options import expanded, is_secret, is_setting, resolved
from ottla.base.units import size_bytes, span_ms
from ottla.lake.events.buckets import BY
from ottla.lake.events.times import LATE_ROWS, EventSettings
from ottla.lake.loads.file_sizes import FileSizes
from ottla.lake.session import SparkSettings

_FIXED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\~]")
_BOOTSTRAP = "localhost:9092"
_STRING, _FLAG, _TABLE, _TEXT_TABLE = "a string", "true or false", "a table", "a table of strings"
_NUMBER = "a number above 0"
_SPAN_WORDS, _SIZE_WORDS = 'a time such as "10s" or "5m"', 'a size such as "256MB"'

# Section, key: what its value has to be. Keys of `decode` are those of its own module.
PIPELINE_KEYS: Mapping[str, Mapping[str, str]] = {
    "source": {
        "topic": _STRING,
        "bootstrap": _STRING,
        "config": _STRING,
        "from": _STRING,
        "until": _STRING,
        "group": _STRING,
        "accept_loss": _FLAG,
        "skip_unreadable": _FLAG,
        "on_bad_timestamp": _STRING,
        "on_null_key": _STRING,
    },
    "target": {
        "table": _STRING,
        "kind": _STRING,
        "format": _STRING,
        "options": _TEXT_TABLE,
        "partition_by": _STRING,
        "event_time": _STRING,
        "allowed_lateness": _SPAN_WORDS,
        "idle_after": _SPAN_WORDS,
        "late_rows": _STRING,
        "file_size": _SIZE_WORDS,
        "row_group_rows": _NUMBER,
        "row_group_size": _SIZE_WORDS,
    },
    "schedule": {"every": _SPAN_WORDS, "max_bytes": _SIZE_WORDS},
    "report": {"html": _STRING, "metrics": _STRING},
    "spark": {"master": _STRING, "name": _STRING, "conf": _TEXT_TABLE},
}
# How settings of Kafka's clients begin; TOML takes the rest of a dotted key for a table.
_OF_CLIENTS = frozenset({"sasl", "ssl", "security", "username", "password"})
_REQUIRED = (("source", "topic"), ("target", "table"))
_CHOICES = {
    ("source", "on_bad_timestamp"): ("fail", "null", "dead-letter"),
    ("source", "on_null_key"): ("fail", "skip"),
    ("target", "format"): ("parquet", "delta", "iceberg"),
    ("target", "partition_by"): BY,
    ("target", "late_rows"): LATE_ROWS,
    ("target", "kind"): ("rows", "latest", "history"),
}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a pipeline does. `decode` is the section as it stands; None: raw columns only."""

    topic: str
    table: str
    bootstrap: str = _BOOTSTRAP
    config: str | None = None  # A file of settings of Kafka's clients.
    start: str = "last-load"
    end: str = "latest"
    group: str | None = None
    accept_loss: bool = False
    skip_unreadable: bool = False
    on_bad_timestamp: str = "fail"
    on_null_key: str = "fail"  # Of changelogs.
    format: str = "parquet"
    events: EventSettings = field(default_factory=EventSettings)
    sizes: FileSizes = field(default_factory=FileSizes)
    kind: str = "rows"  # Or the latest, or the history, of each key: a changelog.
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    every_s: float | None = None  # None: one load for each run.
    max_bytes: int | None = None
    html: str | None = None  # Where the report of each load is written.
    metrics: str | None = None  # Where the numbers of the last load are written.
    spark: SparkSettings = field(default_factory=SparkSettings)
    decode: Mapping[str, Any] | None = None
    folder: str = "."  # Of the file: the paths in it are relative to this.

    @property
    def is_changelog(self) -> bool:
        """Whether the table has a row of each key."""
        return self.kind != "rows"


def read(path: str, bootstrap: str = _BOOTSTRAP) -> Pipeline:
    """Read a pipeline from a file. Raises OttlaError with the key that is wrong.

    `bootstrap` is the cluster of a file that names none.
    """
    try:
        content = Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, f"can't be read: {error}") from error
    parsed = parse(content, path, bootstrap, os.environ)
    folder = Path(path).parent
    return replace(
        parsed,
        folder=str(folder),
        table=_beside(folder, parsed.table),
        config=parsed.config and _beside(folder, parsed.config),
        html=parsed.html and _beside(folder, parsed.html),
        metrics=parsed.metrics and _beside(folder, parsed.metrics),
    )


def _beside(folder: Path, place: str) -> str:
    """A place that is neither a URL nor absolute, below the folder of the pipeline's file."""
    return place if not place or _FIXED.match(place) else str(folder / place)


def parse(
    text: str,
    name: str,
    bootstrap: str = _BOOTSTRAP,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Pipeline:
    """Parse the text of a pipeline; `name` is what errors call it. Raises OttlaError.

    `${NAME}` in the options of target and Spark, and in the name of the clients' settings, is a
    variable of `environment`.
    """
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(name, f"is no TOML: {error}") from error
    for section, content in sections.items():
        if section not in (*PIPELINE_KEYS, "decode"):
            raise _unknown(name, f"section [{section}]", section, (*PIPELINE_KEYS, "decode"))
        if not isinstance(content, dict):
            raise _wrong(name, f"has {section} outside of a section: write [{section}]")
        if section != "decode":
            _require_keys(name, section, content)
    for section, key in _REQUIRED:
        if key not in sections.get(section, {}):
            raise _wrong(name, f"has no {key} in [{section}]")
    place = f"the pipeline {name}"
    source, target = sections["source"], sections["target"]
    schedule, report = sections.get("schedule", {}), sections.get("report", {})
    spark = sections.get("spark", {})
    return Pipeline(
        topic=source["topic"],
        table=target["table"],
        bootstrap=source.get("bootstrap", bootstrap),
        config=expanded(source["config"], f"config in {place}", environment)
        if "config" in source
        else None,
        start=source.get("from", "last-load"),
        end=source.get("until", "latest"),
        group=source.get("group"),
        accept_loss=source.get("accept_loss", False),
        skip_unreadable=source.get("skip_unreadable", False),
        on_bad_timestamp=source.get("on_bad_timestamp", "fail"),
        on_null_key=source.get("on_null_key", "fail"),
        format=target.get("format", "parquet"),
        events=_events_of(target),
        sizes=_sizes_of(target),
        kind=target.get("kind", "rows"),
        store_options=resolved(target.get("options", {}), place, environment),
        every_s=(span_ms(schedule["every"]) or 0) / 1000 if "every" in schedule else None,
        max_bytes=size_bytes(schedule.get("max_bytes", "")),
        html=report.get("html"),
        metrics=report.get("metrics"),
        spark=SparkSettings(
            spark.get("master"),
            spark.get("name"),
            resolved(spark.get("conf", {}), place, environment),
        ),
        decode=sections.get("decode"),
    )


def _events_of(target: Mapping[str, Any]) -> EventSettings:
    spans = {key: span_ms(target.get(key, "")) for key in ("allowed_lateness", "idle_after")}
    return EventSettings(
        target.get("partition_by"),
        target.get("event_time"),
        spans["allowed_lateness"],
        spans["idle_after"],
        target.get("late_rows"),
    )


def _sizes_of(target: Mapping[str, Any]) -> FileSizes:
    given = {
        "file_bytes": size_bytes(target.get("file_size", "")),
        "row_group_rows": target.get("row_group_rows"),
        "row_group_bytes": size_bytes(target.get("row_group_size", "")),
    }
    return FileSizes(**{name: value for name, value in given.items() if value})


def _require_keys(name: str, section: str, content: Mapping[str, Any]) -> None:
    known = PIPELINE_KEYS[section]
    for key, value in content.items():
        if key not in known:
            if key in _OF_CLIENTS:
                raise _wrong(
                    name,
                    f"has {key} in [{section}]: settings of Kafka's clients, and the secrets in "
                    'them, stand in a file of their own, which config = "client.properties" names',
                )
            raise _unknown(name, f"key {key} in [{section}]", key, tuple(known))
        if isinstance(value, str):
            _require_no_secret(name, section, key, value)
        if not _fits(value, known[key]):
            # Tables may hold secrets.
            shown = f" = {value!r}" if isinstance(value, str | int | float) else ""
            raise _wrong(name, f"has {key}{shown} in [{section}], which is not {known[key]}")
        choices = _CHOICES.get((section, key))
        if choices is not None and value not in choices:
            words = ", ".join(choices)
            raise _wrong(name, f"has {key} = {value!r} in [{section}]; it is one of {words}")


def _require_no_secret(name: str, section: str, key: str, value: str) -> None:
    """Refuse it, without showing the value."""
    if key == "config" and is_setting(value):
        raise _wrong(
            name,
            f"has settings of Kafka's clients as config in [{section}], where the path of their "
            'file belongs, as in config = "client.properties"',
        )
    if is_secret("", value):
        raise _wrong(
            name,
            f"has a secret in {key} in [{section}]: brokers get theirs from the file that config "
            "names, storages from the environment or from ${NAME} in options, Spark Connect from "
            "the environment variable SPARK_REMOTE",
        )


def _fits(value: object, wanted: str) -> bool:
    if wanted == _FLAG:
        return isinstance(value, bool)
    if wanted == _TEXT_TABLE:
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if wanted == _NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not isinstance(value, str):
        return False
    if wanted == _SPAN_WORDS:
        return bool(span_ms(value))
    return wanted != _SIZE_WORDS or size_bytes(value) is not None


def _unknown(name: str, what: str, word: str, known: tuple[str, ...]) -> OttlaError:
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return _wrong(name, f"has a {what}, which is not known; {hint}")


def _wrong(name: str, what: str) -> OttlaError:
    return WrongWords(f"the pipeline {name} {what}", ErrorCode.INVALID_CONFIG)
