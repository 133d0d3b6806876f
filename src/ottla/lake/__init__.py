"""Loads topics into a lake, in this process or by PySpark, and proves each load.

    import ottla.lake
    ottla.lake.load("flights", "/lake/flights", bootstrap="localhost:9092", master="here")
    ottla.lake.load("flights", "/lake/flights", bootstrap="localhost:9092")   # on Spark
    ottla.lake.follow("flights", "/lake/flights")   # the same, until it is stopped
    ottla.lake.verify("/lake/flights", bootstrap="localhost:9092")
    ottla.lake.files("/lake/flights")      # what any Parquet reader may read
    ottla.lake.topic("flights").to_pandas()      # or to_arrow, to_polars, to_spark, batches
    ottla.lake.register(spark)             # then spark.read.format("ottla")
    ottla.lake.publish("/lake/flights", "flights-again", bootstrap="localhost:9092")

Needs the extra `ottla[lake]`. Spark is in `ottla[spark]`, and needs Java 17 or newer.
"""

from collections.abc import Mapping

from ottla.lake.certifying.document import certificate, certificate_text
from ottla.lake.changelogs.keeping import changelog
from ottla.lake.changelogs.reading import changelog_as_of
from ottla.lake.decode.decoder import NewField
from ottla.lake.decode.rows import RowSorting
from ottla.lake.decode.spec import (
    Column,
    Csv,
    Decode,
    Format,
    SchemaRules,
    columns,
    decode_from,
)
from ottla.lake.decode.typed_schema import TypedSchema
from ottla.lake.decode.types import Type
from ottla.lake.events.times import EventRule, EventTimes
from ottla.lake.header_names import header_name_bytes
from ottla.lake.job.here import run_here
from ottla.lake.job.progress import Progress
from ottla.lake.job.task import Runner, Task
from ottla.lake.loading import LoadLost, LoadResult, load
from ottla.lake.loads.trying import RefusedKind, SchemaTrial, try_schema
from ottla.lake.manifest import Changelog, DataFile, Manifest, SchemaChange, TableSchema
from ottla.lake.notebook.registering import register
from ottla.lake.notebook.rows import LakeRows, TableRows, TopicRows, table, topic
from ottla.lake.plan import Range
from ottla.lake.sink.publish.fields import Fields
from ottla.lake.sink.publish.pace import PublishPace
from ottla.lake.sink.publish.publishing import PublishProgress, PublishResult, publish
from ottla.lake.stores.store import FileStore, StoredFile, StoreWriter
from ottla.lake.stream.follow.following import follow
from ottla.lake.stream.follow.progress import FollowProgress
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import FencedWriter
from ottla.lake.task import LoadTask, TaskResult
from ottla.lake.upkeep.compacting import CompactionResult, compact
from ottla.lake.upkeep.expiring import ExpiryResult, expire
from ottla.lake.upkeep.replacing import ReplacementResult, replace
from ottla.lake.verifying.report import Verification
from ottla.lake.verifying.verify import verify
from ottla.lake.write.options import (
    ChangelogOptions,
    CompactOptions,
    DecodeOptions,
    FollowOptions,
    LoadOptions,
    ReplaceOptions,
    VerifyOptions,
)
from ottla.lake.write.watch import Observer
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable

__all__ = [
    "Changelog",
    "ChangelogOptions",
    "Column",
    "CompactOptions",
    "CompactionResult",
    "Csv",
    "DataFile",
    "Decode",
    "DecodeOptions",
    "EventRule",
    "EventTimes",
    "ExpiryResult",
    "FencedWriter",
    "Fields",
    "FileStore",
    "FollowOptions",
    "FollowProgress",
    "Format",
    "LakeRows",
    "LedgerTotals",
    "LoadLost",
    "LoadOptions",
    "LoadResult",
    "LoadTask",
    "Manifest",
    "NewField",
    "Observer",
    "PartitionLedger",
    "Progress",
    "PublishPace",
    "PublishProgress",
    "PublishResult",
    "Range",
    "RefusedKind",
    "ReplaceOptions",
    "ReplacementResult",
    "RowSorting",
    "Runner",
    "SchemaChange",
    "SchemaRules",
    "SchemaTrial",
    "StoreWriter",
    "StoredFile",
    "TableRows",
    "TableSchema",
    "Task",
    "TaskResult",
    "TopicRows",
    "Type",
    "TypedSchema",
    "Unreadable",
    "Verification",
    "VerifyOptions",
    "certificate",
    "certificate_text",
    "changelog",
    "changelog_as_of",
    "columns",
    "compact",
    "decode_from",
    "expire",
    "files",
    "follow",
    "header_name_bytes",
    "load",
    "publish",
    "register",
    "replace",
    "run_here",
    "table",
    "topic",
    "try_schema",
    "verify",
]


def files(target: str, *, store_options: Mapping[str, str] | None = None) -> list[str]:
    """Return the paths, or URLs, of all live Parquet files of the table in `target`."""
    table = existing_table(target, store_options)
    # Other programs may add files outside the folder of an Iceberg table: those have URLs.
    return [p if "://" in p else table.store.address(p) for p in table.live_paths()]
