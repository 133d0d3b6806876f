"""Commits to a Delta table with delta-rs: the package `deltalake`, which needs no Java.

    DIR/_delta_log/00000000000000000003.json     {commitInfo}, {add} for each file, {txn} twice

Tasks have written the files; a commit adds them to the log by name, with statistics from their
footers. Files and positions become visible together, because the log entry appears in one step: a
rename that fails if the name exists, or a conditional PUT on S3.

The newest load is recorded in two of Delta's application transactions, because checkpoints keep
those after old log entries are gone: `ottla` is the manifest's version, `ottla.digest` the
first 60 bits of its digest. Delta refuses a commit if a concurrent commit has the same application
transaction, but it does not refuse a repeated one. So the newest load in the log is looked up
before each try. Delta also accepts the removal of a file that another commit has already removed.
A restore of an older version by another program keeps the transactions, but not the files. So
delta-rs must not retry a commit on a newer version of the log, which has to be looked at first.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.event_times import BY, NULL, ONE_BUCKET, Buckets, column_name
from ottla.lake.model.layout import buckets_of_table, columns_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.store.errors import refusal_of_disk
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore, PutUnknown
from ottla.lake.tables.commit import Doubt, sync_written
from ottla.lake.tables.delta_entries import LOG_FOLDER, newest_entries, read_entries
from ottla.lake.tables.format_log import (
    DIGEST_KEY,
    POSITIONS_KEY,
    VERSION_KEY,
    LogEntry,
    LogReading,
    NamedLoad,
    TableLog,
    positions_text,
)
from ottla.lake.tables.statistics import delta_statistics, read_statistics
from ottla.lake.tables.table import LiveFile

_VERSION_APP = "ottla"
_DIGEST_APP = "ottla.digest"
# The number of hexadecimal digits of a digest that fit into an application transaction's version.
_DIGITS = 15
# Write checkpoints often, so that opening the table reads few log entries.
_SETTINGS = {"delta.checkpointInterval": "10"}
_RETENTION = "delta.deletedFileRetentionDuration"
_CONSTRAINT = "delta.constraints."
_COLUMN_RULES = frozenset({"delta.invariants", "delta.generationExpression"})
_IDENTITY = "delta.identity."
# Features of tables that delta-rs can commit to. It refuses any other one, at the commit only.
_WRITABLE = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
    }
)
_FILE_COLUMNS = ("path", "size_bytes", "num_records")
_BOUNDED = ("partition", "offset", "timestamp")


class DeltaLog(TableLog):
    """The Delta log in a store. `options` are those of delta-rs, named as in `object_store`."""

    kind = "Delta"

    def __init__(
        self,
        store: FileStore,
        options: Mapping[str, str] | None = None,
        *,
        is_shared: bool = False,
    ) -> None:
        super().__init__(store, is_shared=is_shared)
        # Passed as a URL, because delta-rs decodes percent signs in a path.
        self._url = store.root.as_uri() if isinstance(store, LocalStore) else store.url
        self._options = dict(options or {})
        # The newest version of the log when `newest` was called.
        self._seen = -1

    def newest(self) -> NamedLoad:
        table = self._open()
        with self._errors():
            self._seen = table.version() if table else -1
            return _named(table) if table else NamedLoad()

    def newest_entries(self) -> Iterator[LogEntry]:
        yield from newest_entries(self._store, self._seen)

    def require_writable(self) -> None:
        table = self._open()
        with self._errors():
            features = set((table.protocol().writer_features if table else None) or ())
        if unknown := sorted(features - _WRITABLE):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"nothing can be committed to the Delta table in {self._store.url}: it has "
                f"{', '.join(unknown)}, which delta-rs cannot write. Nothing was written: drop the "
                "feature (`ALTER TABLE … DROP FEATURE`; for clustering, rowTracking and "
                "domainMetadata make the table without them), or load into another table",
            )

    def require_fitting(self, columns: pa.Schema, buckets: Buckets) -> None:
        if self._is_shared and (table := self._open()):
            wanted = self._as_delta(pa.schema([*columns, *_partition_fields(buckets)]))
            self._require_fitting(table, wanted, _changes(table, wanted), buckets)

    def require_shared(self) -> None:
        if self._open() is None:
            raise self._not_loadable("there is none (its log can't be found)")

    def live_paths(self) -> Sequence[str]:
        table = self._open()
        with self._errors():
            return list(_live(table)) if table else []

    def read(self, columns: pa.Schema, buckets: Buckets = ONE_BUCKET) -> LogReading:
        table = self._open()
        if table is None:
            return LogReading(NamedLoad(), (), True, {})
        with self._errors():
            live = _live(table)
            entries, is_whole, problems = read_entries(self._store)
            problems = [*_schema_problems(table, columns, buckets), *problems]
            return LogReading(_named(table), entries, is_whole, live, problems, self._is_shared)

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:  # noqa: ARG002  # As below.
        # Delta drops log entries by itself when it writes checkpoints.
        table = self._open()
        if table is None:
            return frozenset()
        with self._errors():
            needed = set(_live(table))
            if _RETENTION in table.metadata().configuration:
                # The table's owner sets how long removed files stay. Delta's vacuum lists the files
                # that have passed this time.
                removed = [entry.removed for entry in read_entries(self._store)[0]]
                needed |= set().union(*removed) - set(table.vacuum(dry_run=True))
        return needed

    def _commit_once(self, manifest: Manifest, digest: str, doubt: Doubt) -> bool:
        buckets = buckets_of_table(manifest)
        wanted = self._as_delta(pa.schema([*columns_of(manifest), *_partition_fields(buckets)]))
        table = self._open() or self._create(manifest, wanted, buckets)
        newest = _named(table)
        if not newest.is_of(manifest.version - 1, manifest.previous):
            return newest.is_of(manifest.version, digest)
        for entry in newest_entries(self._store, table.version(), self._seen + 1):
            if entry.restored is not None:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    f"another program restored {entry.restored} of the Delta table in "
                    f"{self._store.url} meanwhile ({entry.name}); nothing was committed: run this "
                    "again, which says what is missing",
                )
        if manifest.removed:
            self._require_live(manifest, _live(table))
        changes = _changes(table, wanted)
        if self._is_shared:
            self._require_fitting(table, wanted, changes, buckets)
        is_wider = _OTHER_TYPE in changes.values()
        if is_wider:
            self._require_all_anew(table, manifest)
        adds = self._adds(manifest, wanted, buckets)
        try:
            if not is_wider and _MORE_FIELDS in changes.values():
                # Add new columns in a separate commit, before the files that have them. Readers see
                # nulls in between.
                table.alter.add_columns([one for one in wanted.fields if changes[one.name]])
                return self._commit_once(manifest, digest, doubt)
            doubt.is_tried = True
            self._try(table, manifest, digest, adds, wanted if is_wider else None)
        except (DeltaError, OSError) as error:
            # Another commit came first, or the answer to this commit was lost. The next try finds
            # out which from the log.
            refusal = refusal_of_disk(error)
            if refusal is None:
                raise self._failed(error) from error
            if self.newest().is_of(manifest.version, digest):
                # The commit succeeded; only a later step, such as a checkpoint, was refused.
                return True
            raise refusal from error
        self._sync(table.version(), manifest)
        return True

    def _sync(self, before: int, manifest: Manifest) -> None:
        """Force the log entry to disk. On failure the files stay, as the commit is in the log."""
        try:
            sync_written(self._store, LOG_FOLDER, after=f"{before:020d}.json")
        except OSError as error:
            raise PutUnknown(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"it is not known whether version {manifest.version} of {self._store.url} outlives "
                f"a power cut: Delta's log can't be forced to its disk ({error}); repair the disk",
            ) from error

    def _try(
        self,
        table: DeltaTable,
        manifest: Manifest,
        digest: str,
        adds: Sequence[AddAction],
        wider: Schema | None,
    ) -> None:
        """Commit to the log. If `wider` columns are given, `manifest` replaces all files."""
        now = manifest.created_ms
        removes = [
            RemoveAction(file.path, manifest.kind != "compaction", now, file.size_bytes)
            for file in manifest.removed
        ]
        table.create_write_transaction(
            [*adds, *(removes if wider is None else [])],
            mode="append" if wider is None else "overwrite",
            schema=wider or table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=CommitProperties(
                custom_metadata={
                    VERSION_KEY: str(manifest.version),
                    DIGEST_KEY: digest,
                    POSITIONS_KEY: positions_text(manifest.positions),
                },
                max_commit_retries=0,
                app_transactions=[
                    Transaction(_VERSION_APP, manifest.version),
                    Transaction(_DIGEST_APP, int(digest[:_DIGITS], 16)),
                ],
            ),
        )

    def _adds(self, manifest: Manifest, columns: Schema, buckets: Buckets) -> list[AddAction]:
        kinds = {name: kind for name, kind in _types(columns).items() if isinstance(kind, str)}
        return [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=_partition_values(buckets, file.event),
                modification_time=manifest.created_ms,
                data_change=manifest.kind != "compaction",
                stats=delta_statistics(read_statistics(self._store, file), kinds),
            )
            for file in manifest.files
        ]

    def _open(self) -> DeltaTable | None:
        with self._errors():
            try:
                return DeltaTable(self._url, storage_options=self._options)
            except TableNotFoundError:
                return None

    def _require_fitting(
        self, table: DeltaTable, wanted: Schema, changes: Mapping[str, int], buckets: Buckets
    ) -> None:
        """Raise OttlaError if the load's columns do not fit the table that another program made."""
        found, kinds = _types(table.schema()), _types(wanted)
        problems = [
            f"its column {name} is {found[name]}, and {kinds[name]} in the load"
            if name in found
            else f"it has no column {name} ({kinds[name]})"
            for name, change in changes.items()
            if change != _SAME
        ]
        required = [one.name for one in table.schema().fields if not one.nullable]
        problems += self._null_problems(required, kinds)
        problems += _layout_problems(table, buckets)
        problems += _rule_problems(table)
        if problems:
            raise self._not_loadable(*problems)

    def _as_delta(self, columns: pa.Schema) -> Schema:
        """Return the columns in Delta's types. Raises OttlaError for a type that Delta lacks."""
        try:
            return Schema.from_arrow(columns)
        except (DeltaError, ValueError, TypeError) as error:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Delta has no type for a column of this load ({error}): declare another type for "
                "it, or load into a table of another format",
            ) from error

    def _require_all_anew(self, table: DeltaTable, manifest: Manifest) -> None:
        """Raise OttlaError if a file with narrower columns would stay in the table."""
        staying = set(_live(table)) - {file.path for file in manifest.removed}
        if staying:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a column gets a wider type than the Delta table in {self._store.url} has. Delta "
                "has one type for all files, so that each is written anew, which a load does; "
                f"{min(staying)} can't be: files of other programs, values of a history that have "
                "ended, and files that a replacement leaves keep theirs. Nothing was committed: "
                "declare the type that the table has, or load into a new folder",
            )

    def must_rewrite(self, columns: pa.Schema) -> bool:
        table = self._open()
        if table is None or self._is_shared:
            return False
        return _OTHER_TYPE in _changes(table, self._as_delta(columns)).values()

    def _create(self, manifest: Manifest, columns: Schema, buckets: Buckets) -> DeltaTable:
        with self._errors():
            DeltaTable.create(
                self._url,
                columns,
                mode="ignore",
                partition_by=[field.name for field in _partition_fields(buckets)],
                name=manifest.topic,
                configuration=_SETTINGS,
                storage_options=self._options,
            )
            return DeltaTable(self._url, storage_options=self._options)


def _named(table: DeltaTable) -> NamedLoad:
    version = table.transaction_version(_VERSION_APP)
    digits = table.transaction_version(_DIGEST_APP)
    if version is None and digits is None:
        return NamedLoad()
    if version is None or digits is None:
        problem = (
            f"its application transactions are {_VERSION_APP}={version}, {_DIGEST_APP}={digits}"
        )
        return NamedLoad(version or 0, problem=problem)
    return NamedLoad(version, f"{digits:0{_DIGITS}x}")


def _live(table: DeltaTable) -> dict[str, LiveFile]:
    found = pa.table(table.get_add_actions(flatten=True))
    low, high = _bounds(found, "min"), _bounds(found, "max")
    events = _events(found)
    cut = _deleted_rows(table)
    deleted = "has rows that another program deleted (a deletion vector)"
    live = {}
    for at, (path, size, rows) in enumerate(
        zip(*(found.column(name).to_pylist() for name in _FILE_COLUMNS), strict=True)
    ):
        bounds = {
            name: (least, greatest)
            for name, values in low.items()
            if (least := values[at]) is not None and (greatest := high[name][at]) is not None
        }
        problem = deleted if path in cut else None
        event = events[at] if events else None
        live[path] = LiveFile(path, size, rows, bounds, problem, event, cut.get(path, 0))
    return live


def _partition_fields(buckets: Buckets) -> list[Any]:
    """Return the partition column, which is not in the files.

    Days are dates, and other units are text.
    """
    if buckets.by == "none":
        return []
    kind = pa.date32() if buckets.by == "day" else pa.string()
    return [pa.field(column_name(buckets.by), kind)]


def _partition_values(buckets: Buckets, bucket: str) -> dict[str, str | None]:
    values = {NULL: None}
    return {one.name: values.get(bucket, bucket) for one in _partition_fields(buckets)}


def _events(files: pa.Table) -> list[str]:
    """Return the event-time bucket of each file in the log; empty if files have no buckets."""
    names = (f"partition.{column_name(by)}" for by in BY)
    columns = [files.column(name) for name in names if name in files.column_names]
    if len(columns) != 1:
        return []
    return [NULL if value is None else str(value) for value in columns[0].to_pylist()]


def _bounds(files: pa.Table, prefix: str) -> dict[str, list[int | None]]:
    """Return the lower or upper bounds of columns that have some, one for each file.

    Values are as Parquet stores them. `prefix` is `min` or `max`.
    """
    found = {}
    for name in _BOUNDED:
        if f"{prefix}.{name}" in files.column_names:
            column = files.column(f"{prefix}.{name}")
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", tz="UTC"))
            found[name] = column.cast(pa.int64()).to_pylist()
    return found


def _deleted_rows(table: DeltaTable) -> dict[str, int]:
    """Return the number of rows that each file's deletion vector removes."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    found = pa.table(table.deletion_vectors())
    # These are URLs, unlike the paths of the log's entries.
    root = f"{table.table_uri.rstrip('/')}/"
    return {
        path.as_py().removeprefix(root): kept.as_py().count(False)
        for path, kept in zip(found["filepath"], found["selection_vector"], strict=True)
    }


def _types(columns: Schema) -> dict[str, Any]:
    """Return Delta's type of each column: a name, or a description of nested types."""
    return {field["name"]: field["type"] for field in json.loads(columns.to_json())["fields"]}


_SAME, _MORE_FIELDS, _OTHER_TYPE = range(3)


def _change(found: Any, wanted: Any) -> int:
    """Return whether a Delta type is the same, needs more fields, or must be another type."""
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return _SAME if found == wanted else _OTHER_TYPE
    if found["type"] != wanted["type"]:
        return _OTHER_TYPE
    match found["type"]:
        case "array":
            return _change(found["elementType"], wanted["elementType"])
        case "map":
            # delta-rs cannot read a file whose map has other fields than the table's.
            same = _change(found["valueType"], wanted["valueType"]) == _SAME
            return _SAME if same else _OTHER_TYPE
    kinds = {field["name"]: field["type"] for field in found["fields"]}
    return max(
        _change(kinds[field["name"]], field["type"]) if field["name"] in kinds else _MORE_FIELDS
        for field in wanted["fields"]
    )


def _changes(table: DeltaTable, wanted: Schema) -> dict[str, int]:
    """Return the change that each column of `wanted` needs in the table, see `_change`."""
    found = _types(table.schema())
    return {
        name: _change(found[name], kind) if name in found else _MORE_FIELDS
        for name, kind in _types(wanted).items()
    }


def _schema_problems(table: DeltaTable, columns: pa.Schema, buckets: Buckets) -> list[str]:
    """Return how the table's columns differ from those of the files."""
    found = _types(table.schema())
    wanted = _types(Schema.from_arrow(pa.schema([*columns, *_partition_fields(buckets)])))
    problems = [
        f"its column {name} is {found[name]}, and {kind} in the files"
        if name in found
        else f"it has no column {name}"
        for name, kind in wanted.items()
        if found.get(name) != kind
    ]
    problems += _layout_problems(table, buckets)
    return [f"the Delta log: {problem}" for problem in problems]


def _rule_problems(table: DeltaTable) -> list[str]:
    """Return a problem for each rule of the table's owner that a load would not check."""
    names = sorted(
        name.removeprefix(_CONSTRAINT)
        for name in table.metadata().configuration
        if name.startswith(_CONSTRAINT)
    )
    problems = [f"it has a constraint {name}, which a load does not check" for name in names]
    return problems + [
        f"its column {one.name} has a rule ({key}), which a load does not follow"
        for one in table.schema().fields
        for key in one.metadata
        if key in _COLUMN_RULES or key.startswith(_IDENTITY)
    ]


def _layout_problems(table: DeltaTable, buckets: Buckets) -> list[str]:
    """Return problems of the table's partition columns and of its column mapping."""
    meta, problems = table.metadata(), []
    wanted = [field.name for field in _partition_fields(buckets)]
    if meta.partition_columns != wanted:
        by = [", ".join(names) or "nothing" for names in (meta.partition_columns, wanted)]
        problems.append(f"it is partitioned by {by[0]}, and the load by {by[1]}")
    if meta.configuration.get("delta.columnMapping.mode", "none") != "none":
        problems.append("its columns have other names in the files (column mapping)")
    return problems
