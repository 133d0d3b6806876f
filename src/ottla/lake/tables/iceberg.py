"""Commits to an Iceberg table by pyiceberg, which needs no Java.

    DIR/metadata/00003-<uuid>.metadata.json    snapshots; the catalog says which file is current
    DIR/metadata/snap-….avro, …-m0.avro        the files of a snapshot
    DIR/_ottla/catalog.db                      the catalog, by default on a local path

Tasks have written the files; a commit adds them unchanged, with bounds from their footers. The
catalog swaps the current metadata file in one step, so files and positions change together. The
files have no field ids, so the table has a name mapping.

The newest load is recorded twice: in the properties of its snapshot, where readers find each
version's positions, and in the table's properties, which stay when snapshots expire. A rollback
changes only the current snapshot, so it shows as a difference. If another commit came first,
pyiceberg would retry an append on top of it, and so load the same offsets twice. Therefore its
retries are off, and the newest load in the log is looked up before each retry by ottla.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy.exc import SQLAlchemyError

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.layout import buckets_of_table, columns_of
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.store.errors import refusal_of_disk
from ottla.lake.store.local import LocalStore
from ottla.lake.store.retries import retried
from ottla.lake.store.store import FileStore
from ottla.lake.tables.commit import CommitRefused, Doubt
from ottla.lake.tables.format_log import (
    DIGEST_KEY,
    POSITIONS_KEY,
    TRIES,
    VERSION_KEY,
    LogReading,
    NamedLoad,
    TableLog,
    positions_text,
)
from ottla.lake.tables.iceberg_catalog import (
    CatalogSettings,
    SyncedFileIO,
    paths_written,
    write_hint,
)
from ottla.lake.tables.iceberg_entries import (
    BOUNDED,
    KEEP,
    KEPT_BY_DEFAULT,
    divided_by_versions,
    expire_old,
    live_files,
    missing_columns,
    named_by,
    partition_of,
    partition_problems,
    partition_table,
    path_below,
    read_entries,
    schema_problems,
    snapshots_before,
)
from ottla.lake.tables.statistics import read_statistics

_NAME_MAPPING = "schema.name-mapping.default"
_RETRIES = "commit.retry.num-retries"
_SETTINGS = {
    # Merge Iceberg's manifests once there are a hundred small ones.
    "commit.manifest-merge.enabled": "true",
    # Delete metadata files that no reader needs any more.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    KEEP: KEPT_BY_DEFAULT,
}
_CATALOG_OPTIONS = (
    "--store-option catalog.type=…, catalog.uri=…, catalog.name=…, catalog.table=NAMESPACE.NAME"
)
_NOT_DONE = (CommitFailedException, ValidationException)
_PERHAPS_DONE = (CommitStateUnknownException, RESTError, SQLAlchemyError, OSError)


class IcebergLog(TableLog):
    """The Iceberg table at the root of a store, in the catalog of `settings`."""

    kind = "Iceberg"

    def __init__(
        self, store: FileStore, settings: CatalogSettings, *, is_shared: bool = False
    ) -> None:
        super().__init__(store, is_shared=is_shared)
        self.settings = settings.stored()
        self._settings = settings

    def newest(self) -> NamedLoad:
        table = self._load()
        with self._errors():
            return named_by(table) if table else NamedLoad()

    def require_fitting(self, columns: pa.Schema, buckets: Buckets) -> None:  # noqa: ARG002  # It has none.
        if self._is_shared and (table := self._load()):
            self._require_fitting(table, columns)

    def require_shared(self) -> None:
        name = ".".join(self._settings.table)
        if self._settings.is_own:
            raise self._not_loadable(f"its catalog has to be named ({_CATALOG_OPTIONS})")
        table = self._load()
        if table is None:
            raise self._not_loadable(
                f"the catalog {self._settings.name} has no table {name} ({_CATALOG_OPTIONS})"
            )
        if not self._settings.is_at(table.location(), self._store):
            raise self._not_loadable(f"the table {name} of its catalog is in {table.location()}")
        if not table.spec().is_unpartitioned():
            raise self._not_loadable(f"it is partitioned ({table.spec()}), and the load is not")

    def live_paths(self) -> Sequence[str]:
        table = self._load()
        with self._errors():
            return list(live_files(table)) if table else []

    def read(self, columns: pa.Schema, buckets: Buckets = ONE_BUCKET) -> LogReading:
        table = self._load()
        if table is None:
            return LogReading(NamedLoad(), (), True, {})
        with self._errors():
            entries, is_whole, problems = read_entries(table)
            live = live_files(table)
            more = [
                *schema_problems(table, columns),
                *partition_problems(table, buckets, has_files=bool(live)),
                *problems,
            ]
            return LogReading(named_by(table), entries, is_whole, live, more, self._is_shared)

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        return retried(TRIES, CommitRefused)(self._forget_once, oldest, dry_run)

    def _forget_once(self, oldest: int, dry_run: bool) -> AbstractSet[str]:
        table = self._load()
        if table is None:
            return frozenset()
        with self._refused_commit():
            # If another program made the table, it decides when snapshots expire.
            old = [] if self._is_shared else snapshots_before(table, oldest)
            needed, unneeded = divided_by_versions(table, old)
            if old and not dry_run:
                # Set in this process only, and not stored.
                table.metadata.properties[_RETRIES] = "0"
                with _removed_where_refused(table):
                    table.maintenance.expire_snapshots().by_ids(old).commit()
                self._write_hint(table)
                for path in unneeded:
                    self._store.remove(path)
        return needed

    def must_rewrite(self, columns: pa.Schema) -> bool:  # noqa: ARG002  # Readers widen older files.
        return False

    def _commit_once(self, manifest: Manifest, digest: str, doubt: Doubt) -> bool:
        columns = columns_of(manifest)
        table = self._load()
        if table is not None and self._is_shared:
            self._require_fitting(table, columns)
        table = table or self._create(columns)
        newest = named_by(table)
        if newest.problem:
            raise self._failed(newest.problem, OttlaError)
        if not newest.is_of(manifest.version - 1, manifest.previous):
            return newest.is_of(manifest.version, digest)
        doubt.is_tried = True
        # Another commit may come first, or an answer may be lost. The next try finds out which
        # from the log.
        with self._refused_commit():
            with _removed_where_refused(table):
                self._try(table, manifest, digest, columns)
            self._write_hint(table)
        return True

    def _write_hint(self, table: Table) -> None:
        if self._settings.is_own and isinstance(self._store, LocalStore):
            write_hint(self._store, table)

    def _try(self, table: Table, manifest: Manifest, digest: str, columns: pa.Schema) -> None:
        said = {
            VERSION_KEY: str(manifest.version),
            DIGEST_KEY: digest,
            POSITIONS_KEY: positions_text(manifest.positions),
        }
        removed = self._to_remove(table, manifest)
        table.metadata.properties[_RETRIES] = "0"  # Set in this process only, and not stored.
        with table.transaction() as transaction:
            transaction.set_properties(said)
            if not self._is_shared:
                self._unite_columns(transaction, columns)
            if table.name_mapping() is None:
                mapping = table.schema().name_mapping.model_dump_json()
                transaction.set_properties({_NAME_MAPPING: mapping})
            buckets = buckets_of_table(manifest)
            partition_table(transaction, buckets)
            now = transaction.table_metadata
            added = [self._as_iceberg(table, now, file, buckets) for file in manifest.files]
            update = transaction.update_snapshot(snapshot_properties=said)
            with update.overwrite() if removed else update.merge_append() as snapshot:
                for file in added:
                    snapshot.append_data_file(file)
                for file in removed:
                    snapshot.delete_data_file(file)
            expire_old(transaction, table)

    def _require_fitting(self, table: Table, columns: pa.Schema) -> None:
        """Raise OttlaError if the load's columns do not fit the table that another program made."""
        mapping = table.name_mapping() or table.schema().name_mapping
        problems = missing_columns(table, columns, mapping)
        required = [one.name for one in table.schema().fields if one.required]
        problems += self._null_problems(required, columns.names)
        if not table.spec().is_unpartitioned():
            problems.append(f"it is partitioned ({table.spec()}), and the load is not")
        if problems:
            raise self._not_loadable(*problems)

    def _unite_columns(self, transaction: Transaction, columns: pa.Schema) -> None:
        """Add columns and nested fields, and widen types. Raises OttlaError."""
        try:
            with transaction.update_schema() as changes:
                changes.union_by_name(columns)
        except (ValidationException, ValueError) as error:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the Iceberg table in {self._store.url} can't have the columns of this load "
                f"({error}); nothing was committed: declare the type that the table has, or "
                "another column",
            ) from error

    def _to_remove(self, table: Table, manifest: Manifest) -> list[IcebergFile]:
        """Return the files that `manifest` removes. Raises OttlaError if one is no longer live."""
        if not manifest.removed:
            return []
        files = (task.file for task in table.scan().plan_files())
        live = {path_below(table, file.file_path): file for file in files}
        self._require_live(manifest, live)
        return [live[file.path] for file in manifest.removed]

    def _as_iceberg(
        self, table: Table, now: TableMetadata, file: DataFile, buckets: Buckets
    ) -> IcebergFile:
        found = read_statistics(self._store, file)
        low: dict[int, bytes] = {}
        high: dict[int, bytes] = {}
        nulls: dict[int, int] = {}
        for column in now.schema().fields:
            bounds = found.columns.get(column.name)
            if bounds is not None and isinstance(column.field_type, BOUNDED):
                low[column.field_id] = to_bytes(column.field_type, bounds.low)
                high[column.field_id] = to_bytes(column.field_type, bounds.high)
                nulls[column.field_id] = bounds.nulls
        return IcebergFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table.location()}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=partition_of(file, buckets),
            record_count=found.rows,
            file_size_in_bytes=file.size_bytes,
            column_sizes={},
            value_counts=dict.fromkeys(nulls, found.rows),
            null_value_counts=nulls,
            nan_value_counts={},
            lower_bounds=low,
            upper_bounds=high,
            key_metadata=None,
            split_offsets=None,
            equality_ids=None,
            sort_order_id=None,
            spec_id=now.default_spec_id,
        )

    def _load(self) -> Table | None:
        if not self._settings.may_exist(self._store):
            return None
        with self._errors():
            try:
                table = self._settings.catalog(self._store).load_table(self._settings.table)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except FileNotFoundError as error:
                if self._settings.is_own and self._store.url not in str(error):
                    raise self._moved("another folder") from error
                raise
        if self._settings.is_own and not self._settings.is_at(table.location(), self._store):
            raise self._moved(table.location().removeprefix("file://"))
        return table

    def _moved(self, place: str) -> OttlaError:
        """Return the error for a copied table, whose commits would go to the original's folder."""
        return OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the Iceberg table in {self._store.url} was copied or renamed: its metadata names "
            f"files of {place}, as Iceberg's absolute paths do; move it back there, or load into "
            "a new folder (tables of Parquet and Delta may be moved)",
        )

    def _create(self, columns: pa.Schema) -> Table:
        with self._errors():
            catalog = self._settings.catalog(self._store)
            # Retry if another first commit creates the table at the same time.
            retried(TRIES, SQLAlchemyError)(self._make, catalog, columns)
            return catalog.load_table(self._settings.table)

    def _make(self, catalog: Catalog, columns: pa.Schema) -> None:
        name, location = self._settings.table, self._settings.location(self._store)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(name[:-1])
        with suppress(TableAlreadyExistsError):
            catalog.create_table(name, columns, location, properties=_SETTINGS)

    @contextmanager
    def _refused_commit(self) -> Iterator[None]:
        """Convert errors: to that of a full or read-only disk, otherwise to CommitRefused."""
        try:
            yield
        except (*_NOT_DONE, *_PERHAPS_DONE) as error:
            of_disk = isinstance(error, OSError | SQLAlchemyError)
            refusal = refusal_of_disk(error) if of_disk else None
            raise (refusal or self._failed(error)) from error


@contextmanager
def _removed_where_refused(table: Table) -> Iterator[None]:
    """Remove the metadata files of a commit that failed because the disk is full or read-only.

    Otherwise a full disk would fill up with unused files. A commit changes the catalog last, so
    such a failure means that nothing was committed.
    """
    with paths_written() as paths:
        try:
            yield
        except (OSError, SQLAlchemyError) as error:
            if refusal_of_disk(error) is not None and isinstance(table.io, SyncedFileIO):
                for path in (*table.io.written, *paths):
                    path.unlink(missing_ok=True)
            raise
