"""Declares the options of the lake's functions, commands and pipeline files, each once."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from ottla.lake.job.progress import UNWATCHED, Observer
from ottla.lake.job.reduce_task import OnNullKey
from ottla.lake.job.task import Runner
from ottla.lake.model.decode_spec import Decode, OnBadRecord
from ottla.lake.model.event_times import By, LateRows
from ottla.lake.model.manifest import Keeps
from ottla.lake.model.option import Option, Size, Span
from ottla.lake.tables.formats import Format

OnBadTimestamp = Literal["fail", "null", "dead-letter"]

_FORMATS = "json, csv, avro, protobuf, string, bytes, debezium-json, debezium-avro"
_UNTIL = "Where it ends, likewise (other partitions: latest)."


class AccessOptions(TypedDict, total=False):
    """Settings of the clients' connections. They are never in a plan, a manifest or a log."""

    config: Annotated[
        str | None,
        Option(
            "The path of a file of settings of Kafka's clients; OTTLA_CONFIG by default.",
            flag=None,
        ),
    ]
    client: Annotated[
        Mapping[str, str] | None,
        Option("Settings of Kafka's clients, which overrule the file.", flag=None),
    ]


class SourceOptions(AccessOptions, total=False):
    """The cluster to read from."""

    bootstrap: Annotated[
        str, Option("The cluster", "localhost:9092", flag=None, key="source.bootstrap")
    ]


class SparkOptions(TypedDict, total=False):
    """Settings that decide where tasks run."""

    master: Annotated[
        str | None,
        Option(
            "Spark's master, or sc://HOST:PORT. Default: as Spark is configured, else Spark on "
            "this machine.",
            key="spark.master",
            metavar="URL",
        ),
    ]
    conf: Annotated[
        Mapping[str, str] | None,
        Option("A setting of Spark; repeatable.", key="spark.conf", metavar="NAME=VALUE"),
    ]
    name: Annotated[str | None, Option("The application's name in Spark.", key="spark.name")]
    spark_session: Annotated[
        Any, Option("A running session, in place of one by the master.", flag=None)
    ]
    runner: Annotated[Runner | None, Option("What runs the tasks, in place of Spark.", flag=None)]


class TableOptions(TypedDict, total=False):
    """Settings for opening a table."""

    store_options: Annotated[
        Mapping[str, str] | None,
        Option(
            "An option of the table's storage (docs/how-to/store-tables.md); ${NAME} "
            "is a variable. Repeatable.",
            flag="--store-option",
            key="target.options",
            metavar="NAME=VALUE",
        ),
    ]


class RunOptions(SparkOptions, TableOptions, total=False):
    """Settings of all functions that write to a table."""

    watch: Annotated[Observer, Option("What is called meanwhile.", UNWATCHED, flag=None)]


class DecodeOptions(TypedDict, total=False):
    """How keys and values become typed columns: by separate options, or by one `decode`."""

    value: Annotated[str | None, Option(f"What values are: {_FORMATS}.", metavar="FORMAT")]
    key: Annotated[str | None, Option("What keys are, likewise.", metavar="FORMAT")]
    columns: Annotated[
        Mapping[str, Any] | None,
        Option(
            "A typed column of the value; repeatable. Default: by the schema, or by a sample.",
            flag="--column",
            metavar="NAME=TYPE",
        ),
    ]
    key_columns: Annotated[
        Mapping[str, Any] | None,
        Option("One of the key.", flag="--key-column", metavar="NAME=TYPE"),
    ]
    schema_file: Annotated[
        str | None, Option("The values' schema: an .avsc or a .proto file.", metavar="FILE")
    ]
    key_schema_file: Annotated[str | None, Option("The keys' schema.", metavar="FILE")]
    message: Annotated[str | None, Option("The name of the values' message (Protobuf).")]
    key_message: Annotated[str | None, Option("The name of the keys' message (Protobuf).")]
    registry: Annotated[
        str | None, Option("A schema registry with Confluent's API.", metavar="URL")
    ]
    on_bad_record: Annotated[
        OnBadRecord | None,
        Option("What becomes of a record that can't be decoded. Default: fail."),
    ]
    drop_raw: Annotated[
        bool, Option("Keep a hash of each record instead of its key, value and headers.")
    ]
    decode_file: Annotated[
        str | None,
        Option(
            "A TOML file with a table [decode] that says all of this; options overrule it.",
            metavar="FILE",
        ),
    ]
    decode: Annotated[
        Decode | Mapping[str, Any] | None,
        Option("All of it as one value, or as the table [decode] of a TOML file.", flag=None),
    ]


class RecordOptions(SourceOptions, RunOptions, DecodeOptions, total=False):
    """Settings of reading records, and of records that cannot be read or stored."""

    skip_unreadable: Annotated[
        bool,
        Option(
            "Leave out batches that cannot be read, and count them, instead of failing.",
            key="source.skip_unreadable",
        ),
    ]
    accept_loss: Annotated[
        bool,
        Option(
            "Go on where records were deleted before they were read, and put that on record.",
            key="source.accept_loss",
        ),
    ]
    on_bad_timestamp: Annotated[
        OnBadTimestamp,
        Option(
            "What becomes of a record whose timestamp no Spark timestamp can hold.",
            "fail",
            key="source.on_bad_timestamp",
        ),
    ]


class ReplaceOptions(RecordOptions, total=False):
    """The options of `replace`."""


class WriterOptions(RecordOptions, total=False):
    """The options of all functions that advance a table's positions."""

    start: Annotated[
        str,
        Option(
            "Where partitions start that are not in the table yet: earliest, latest, a time (10m, "
            "2024-01-31), or PARTITION:OFFSET,… (other partitions: earliest)",
            "last-load",
            "--from",
            "source.from",
        ),
    ]
    group: Annotated[
        str | None,
        Option(
            "Commit to this group where the table stands, for lag tools.",
            key="source.group",
            may_be_empty=False,
        ),
    ]
    format: Annotated[
        Format | None,
        Option("The format of a new table; parquet by default.", key="target.format"),
    ]
    override: Annotated[
        str | None,
        Option(
            "Build on a table whose manifests contradict each other, and put that on record.",
            metavar="REASON",
            may_be_empty=False,
        ),
    ]


class RowOptions(WriterOptions, total=False):
    """The options of tables of rows."""

    partition_by: Annotated[
        By | None,
        Option(
            "Keep rows apart by event time (UTC); the first load decides.",
            key="target.partition_by",
        ),
    ]
    event_time: Annotated[
        str | None,
        Option(
            "Which column it is: timestamp (the record's), or a decoded one of that type.",
            key="target.event_time",
            metavar="COLUMN",
        ),
    ]
    allowed_lateness: Annotated[
        Span | None,
        Option(
            "How far behind the highest event time the watermark stays; 0 by default.",
            key="target.allowed_lateness",
            unit="span",
        ),
    ]
    idle_after: Annotated[
        Span | None,
        Option(
            "Let a partition without new records follow the clock, SPAN behind it.",
            key="target.idle_after",
            unit="span",
        ),
    ]
    late_rows: Annotated[
        LateRows | None,
        Option(
            "What becomes of rows behind the table's watermark; keep by default.",
            key="target.late_rows",
        ),
    ]
    file_size: Annotated[
        Size,
        Option(
            "Of the log that one file holds, at most.",
            "128Mi",
            "--target-file-size",
            "target.file_size",
            "size",
        ),
    ]
    row_group_rows: Annotated[
        int,
        Option("Rows of a row group, at most.", 1 << 20, key="target.row_group_rows", metavar="N"),
    ]
    row_group_size: Annotated[
        Size,
        Option(
            "Of a row group in memory, at most.", "64Mi", key="target.row_group_size", unit="size"
        ),
    ]


class LoadOptions(RowOptions, total=False):
    """The options of `load`."""

    into_existing: Annotated[
        bool,
        Option(
            "DIR is a Delta or Iceberg table that others made: columns are matched by name.",
            key="target.into_existing",
        ),
    ]
    end: Annotated[str, Option(_UNTIL, "latest", "--until", "source.until")]


class FollowOptions(RowOptions, total=False):
    """The options of `follow`."""

    once: Annotated[bool, Option("End when all is loaded that was there at the start.")]
    max_bytes: Annotated[
        Size,
        Option(
            "Commit as soon as about so many bytes of the log are new, and no more at once.",
            "128Mi",
            key="schedule.max_bytes",
            unit="size",
        ),
    ]
    every: Annotated[
        Span,
        Option(
            "Commit what is new so long after the last commit, at the latest.",
            "10s",
            key="schedule.every",
            unit="interval",
        ),
    ]


class ChangelogOptions(WriterOptions, total=False):
    """The options of `changelog`."""

    kind: Annotated[Keeps | None, Option("What a new table keeps of each key; latest by default.")]
    buckets: Annotated[
        int | None,
        Option(
            "Over how many files a new table spreads its keys; by default as many as fit its size."
        ),
    ]
    end: Annotated[str, Option(_UNTIL, "latest", "--until", "source.until")]
    on_null_key: Annotated[
        OnNullKey,
        Option(
            "What becomes of a record without a key; skipped ones are counted as keyless.",
            "fail",
            key="source.on_null_key",
        ),
    ]
    reconcile: Annotated[
        bool,
        Option(
            "Read the log again from its start: rows go whose deletions compaction has removed."
        ),
    ]
    every: Annotated[
        Span | None,
        Option(
            "Run again and again, so long apart (10s, 5m), until SIGTERM or Ctrl-C.",
            unit="interval",
        ),
    ]


class CompactOptions(RunOptions, total=False):
    """The options of `compact`."""

    target_size: Annotated[Size, Option("How large files become at most.", "128MB", unit="size")]
    row_group_size: Annotated[
        Size, Option("How large row groups become, in memory.", "64MB", unit="size")
    ]


class VerifyOptions(AccessOptions, SparkOptions, TableOptions, total=False):
    """The options of `verify`."""

    on_spark: Annotated[
        bool,
        Option(
            "Check files and topic with tasks of Spark; --master, --conf and --name say so, too.",
            flag="--spark",
        ),
    ]
