"""Builds the settings of a load from the options of a call."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.lake.job.options import DecodeOptions, RecordOptions, RowOptions
from ottla.lake.job.output import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from ottla.lake.model.decode_spec import Decode, decode_from, require_options
from ottla.lake.model.event_times import EventSettings
from ottla.lake.model.plan import SPLIT_BYTES
from ottla.lake.rows.protobuf_values import schema_text
from ottla.lake.source.access import Bootstrap, brokers_of

# How users accept a loss, in the words of errors.
ACCEPT_LOSS = "--accept-loss (accept_loss=True)"
_WORDS = (
    "value", "key", "columns", "key_columns", "schema_file", "key_schema_file", "message",
    "key_message", "registry", "on_bad_record",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Target sizes of files and row groups. Raises OttlaError for a size that is not above 0."""

    # Counted in bytes of the log; a data file has about the same size.
    file_bytes: int = SPLIT_BYTES
    row_group_rows: int = ROW_GROUP_ROWS
    # Counted in bytes of Arrow's columns, before compression.
    row_group_bytes: int = ROW_GROUP_BYTES

    def __post_init__(self) -> None:
        if min(self.file_bytes, self.row_group_rows, self.row_group_bytes) <= 0:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "sizes of files and row groups are above 0")


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How records are loaded, independent of the offsets."""

    bootstrap: Bootstrap
    skip_unreadable: bool = False
    # If True, lost records do not fail the load; the manifest records their number.
    takes_loss: bool = False
    null_bad_timestamps: bool = False
    # None to decode as in the table's last load.
    decode: Decode | None = None
    dead_timestamps: bool = False
    events: EventSettings = field(default_factory=EventSettings)
    sizes: FileSizes = field(default_factory=FileSizes)


def settings_of(
    options: RecordOptions,
    events: EventSettings | None = None,
    sizes: FileSizes | None = None,
) -> LoadSettings:
    """Return the settings for `options`, which `filled` has completed. Raises OttlaError."""
    return LoadSettings(
        brokers_of(options["bootstrap"], options["config"], options["client"]),
        options["skip_unreadable"],
        options["accept_loss"],
        null_bad_timestamps=options["on_bad_timestamp"] == "null",
        decode=decode_of(options),
        dead_timestamps=options["on_bad_timestamp"] == "dead-letter",
        events=events or EventSettings(),
        sizes=sizes or FileSizes(),
    )


def row_settings_of(options: RowOptions) -> LoadSettings:
    """Return the settings for a table of rows, with event times and sizes of files."""
    return settings_of(options, events_of(options), sizes_of(options))


def events_of(options: RowOptions) -> EventSettings:
    """Return the event-time settings among the options."""
    lateness, idle = options["allowed_lateness"], options["idle_after"]
    return EventSettings(
        options["partition_by"],
        options["event_time"],
        None if lateness is None else int(lateness),
        None if idle is None else int(idle),
        options["late_rows"],
    )


def sizes_of(options: RowOptions) -> FileSizes:
    """Return the sizes of files and row groups among the options."""
    return FileSizes(
        int(options["file_size"]), options["row_group_rows"], int(options["row_group_size"])
    )


def decode_of(options: DecodeOptions) -> Decode | None:
    """Return the declaration of keys and values; None if there is none. Raises OttlaError."""
    given: Mapping[str, Any] = options
    words = {name: given[name] for name in _WORDS if given.get(name)}
    if given.get("drop_raw"):
        words["keep_raw"] = False
    base = given.get("decode")
    if isinstance(base, Decode):
        if words or given.get("decode_file"):
            raise WrongWords(f"decode says all of it: leave out {', '.join(words) or 'the file'}")
        return base
    path = given.get("decode_file")
    found = {**(base or {}), **(_of_file(Path(path)) if path else {}), **words}
    require_options(found, ("schema_file", "key_schema_file"))
    for side, prefix in (("value", ""), ("key", "key_")):
        schema = found.pop(f"{prefix}schema_file", None)
        if schema is not None:
            found[f"{prefix}schema"] = schema_text(Path(str(schema)), str(found.get(side, "")))
    return decode_from(found) if found else None


def _of_file(path: Path) -> dict[str, Any]:
    """Return the table [decode] of a file, with paths of schema files relative to that file."""
    try:
        found = tomllib.loads(path.read_text())
        if "decode" not in found:
            raise WrongWords(f"{path} has no table [decode]")
        return schemas_beside(dict(found["decode"]), path.parent)
    except (tomllib.TOMLDecodeError, OSError, TypeError, ValueError) as error:
        raise WrongWords(f"{path} has no table [decode] that can be read: {error}") from None


def schemas_beside(decode: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a table [decode] whose paths of schemas, relative to `folder`, are joined with it."""
    names = ("schema_file", "key_schema_file")
    return {k: str(folder / str(v)) if k in names else v for k, v in decode.items()}
