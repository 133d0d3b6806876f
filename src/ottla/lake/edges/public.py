"""The public names of `ottla.lake`, which has them from here on first use."""

from collections.abc import Mapping

from ottla.lake.check.certificate import certificate, certificate_text
from ottla.lake.check.report import Verification
from ottla.lake.check.verify import verify
from ottla.lake.edges.notebook import LakeRows, TableRows, TopicRows, register, table, topic
from ottla.lake.job.options import (
    ChangelogOptions,
    CompactOptions,
    DecodeOptions,
    FollowOptions,
    LoadOptions,
    ReplaceOptions,
    VerifyOptions,
)
from ottla.lake.job.progress import FollowProgress, Observer, Progress
from ottla.lake.job.task import LoadResult, Runner, Task
from ottla.lake.job.workers import run_here
from ottla.lake.model.decode_spec import (
    Column,
    Csv,
    Decode,
    Format,
    SchemaRules,
    columns,
    decode_from,
)
from ottla.lake.model.event_times import EventTimes
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.manifest import Changelog, DataFile, Manifest, SchemaChange, TableSchema
from ottla.lake.model.schema import header_name_bytes
from ottla.lake.model.types import Type
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import CommitConflict, WriterFenced
from ottla.lake.write.changelog import changelog
from ottla.lake.write.changelog_state import changelog_as_of
from ottla.lake.write.compact import CompactionResult, compact
from ottla.lake.write.expire import ExpiryResult, expire
from ottla.lake.write.follow import follow
from ottla.lake.write.load import load
from ottla.lake.write.publish import (
    PublishOptions,
    PublishPace,
    PublishProgress,
    PublishResult,
    publish,
)
from ottla.lake.write.publish_source import Fields
from ottla.lake.write.replace import ReplacementResult, replace
from ottla.lake.write.schema_trial import RefusedKind, SchemaTrial, try_schema
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable

__all__ = [
    "Changelog",
    "ChangelogOptions",
    "Column",
    "CommitConflict",
    "CompactOptions",
    "CompactionResult",
    "Csv",
    "DataFile",
    "Decode",
    "DecodeOptions",
    "EventTimes",
    "ExpiryResult",
    "Fields",
    "FollowOptions",
    "FollowProgress",
    "Format",
    "LakeRows",
    "LedgerTotals",
    "LoadOptions",
    "LoadResult",
    "Manifest",
    "Observer",
    "PartitionLedger",
    "Progress",
    "PublishOptions",
    "PublishPace",
    "PublishProgress",
    "PublishResult",
    "RefusedKind",
    "ReplaceOptions",
    "ReplacementResult",
    "Runner",
    "SchemaChange",
    "SchemaRules",
    "SchemaTrial",
    "TableRows",
    "TableSchema",
    "Task",
    "TopicRows",
    "Type",
    "TypedSchema",
    "Unreadable",
    "Verification",
    "VerifyOptions",
    "WriterFenced",
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
