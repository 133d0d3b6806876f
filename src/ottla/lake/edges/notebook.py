"""Reads topics and tables in a notebook, as Arrow, pandas, polars or Spark data.

    ottla.lake.topic("flights", start="@1704067200000").to_pandas()
    for batch in ottla.lake.topic("flights", columns=["key", "value"]).batches(): …
    ottla.lake.table("/lake/flights").to_polars()

A topic is read in this process as by the data source `ottla`: only committed records are read,
every offset is accounted for, and lost records are an error. `batches` needs some megabytes of
memory, even for much data. The other forms need memory for all rows.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.session import session
from ottla.lake.model.layout import columns_of, in_columns
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import Boundary, parse_boundary
from ottla.lake.model.schema import ROW_SCHEMA, SOURCE_COLUMNS, VALIDITY
from ottla.lake.rows.key_changes import holds_at
from ottla.lake.source.access import BOOTSTRAP, config_of_process
from ottla.lake.source.narrowing import Narrowing
from ottla.lake.source.source_options import parse_options
from ottla.lake.source.tasks import planned_tasks, read_task
from ottla.lake.tables.opening import existing_table
from ottla.lake.write.changelog_state import micros_of, require_history

_BATCH_ROWS = 1 << 16
# A Spark Connect server writes each plan of its clients to its event log, with the options of
# sources and sinks as keys and values. Options that match this pattern, a Java regular expression,
# are left out.
_OPTIONS = r'key: "kafka\.(?:sasl|ssl)\.[^"]*+"\s*+value: "[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REDACTION = "spark.sql.redaction.string.regex"


class LakeRows(ABC):
    """Rows that can be read as Arrow, pandas, polars or Spark data."""

    @property
    @abstractmethod
    def schema(self) -> Any:
        """Return the columns as an Arrow schema."""

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """Yield Arrow record batches, in bounded memory."""

    @abstractmethod
    def to_spark(self, spark: Any = None) -> Any:
        """Return a Spark DataFrame, whose rows the executors read.

        It belongs to `spark`, by default the running session or a new one.
        """

    def to_arrow(self) -> Any:
        """Return all rows as one `pyarrow.Table`."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self) -> Any:
        """Return all rows as a pandas DataFrame. Raises OttlaError if pandas is missing."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return all rows as a polars DataFrame. Raises OttlaError if polars is missing."""
        return _require("polars").from_arrow(self.to_arrow())


def _require(package: str) -> Any:
    """Import an optional package. Raises OttlaError if it is missing."""
    try:
        return import_module(package)
    except ImportError:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION, f"{package} is not installed: pip install {package}"
        ) from None


class TopicRows(LakeRows):
    """Records of one topic between two boundaries, partition by partition."""

    def __init__(self, options: Mapping[str, str], limit: int | None) -> None:
        self._words = dict(options)
        self._options = parse_options(options)
        self._limit = limit

    @property
    def schema(self) -> Any:
        return pa.schema(
            ROW_SCHEMA.field(SOURCE_COLUMNS[name].in_row).with_name(name)
            for name in self._options.columns
        )

    def batches(self) -> Iterator[Any]:
        """Yield Arrow record batches. Raises OttlaError for an unexplained offset.

        With a limit, only the offsets that were read are checked.
        """
        tasks = planned_tasks(self._options, Narrowing())
        found = (batch for task in tasks for batch in read_task(task, self._options))
        return _limited(found, self._limit)

    def to_spark(self, spark: Any = None) -> Any:
        started = spark or session()
        register(started)
        config = config_of_process()
        words = {"config": config, **self._words} if config else self._words
        frame = started.read.format("ottla").options(**words).load()
        return frame if self._limit is None else frame.limit(self._limit)


class TableRows(LakeRows):
    """The rows in a table's live files. With `as_of`, those that were valid at that time."""

    def __init__(
        self,
        target: str,
        columns: Sequence[str] | None,
        limit: int | None,
        store_options: Mapping[str, str] | None,
        as_of: datetime | None = None,
    ) -> None:
        self._table = existing_table(target, store_options)
        self._paths = list(self._table.live_paths())
        self._limit = limit
        newest, _ = self._table.latest()
        self._moment = None if as_of is None else micros_of(as_of)
        self._all = found = self._columns(newest)
        if as_of is not None:
            require_history(target, newest)
            found = pa.schema([one for one in found if one not in VALIDITY])
        unknown = sorted(set(columns or ()) - set(found.names))
        if unknown:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"{target} has no column {unknown[0]}; it has {', '.join(found.names)}",
            )
        self._schema = pa.schema([found.field(name) for name in columns or found.names])

    @property
    def schema(self) -> Any:
        return self._schema

    def batches(self) -> Iterator[Any]:
        return _limited(self._batches(), self._limit)

    def to_spark(self, spark: Any = None) -> Any:
        started = spark or session()
        addresses = [_for_hadoop(self._table.store.address(path)) for path in self._paths]
        # Give Spark the table's types, because a column may have a narrower type in some files.
        # They come from a row of nulls: Spark Connect gets no types from a table without rows.
        nulls = [pa.nulls(1, field.type) for field in self._all]
        empty = started.createDataFrame(pa.table(nulls, names=self._all.names)).where("false")
        if not addresses:
            return empty.select(*self.schema.names)
        frame = started.read.schema(empty.schema).parquet(*addresses)
        if self._moment is not None:
            frame = frame.where(
                f"unix_micros(valid_from) <= {self._moment} AND "
                f"(valid_to IS NULL OR unix_micros(valid_to) > {self._moment})"
            )
        frame = frame.select(*self.schema.names)
        return frame if self._limit is None else frame.limit(self._limit)

    def _batches(self) -> Iterator[Any]:
        for path in self._paths:
            with self._table.store.open(path) as file, pq.ParquetFile(file) as parquet:
                times = [] if self._moment is None else [one.name for one in VALIDITY]
                wanted = [*self._schema.names, *times]
                present = [n for n in wanted if n in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(_BATCH_ROWS, columns=present):
                    held = pa.Table.from_batches([self._held(batch)])
                    yield from in_columns(held, self._schema).to_batches()

    def _held(self, batch: Any) -> Any:
        """Return the rows that were valid at the requested time."""
        return batch if self._moment is None else batch.filter(holds_at(batch, self._moment))

    def _columns(self, newest: Manifest | None) -> Any:
        """Return the columns of all files, as later loads may have added columns."""
        if newest is None or newest.table_schema is None:
            return columns_of(newest)
        schemas = []
        for path in self._paths:
            with self._table.store.open(path) as file:
                schemas.append(pq.read_schema(file).remove_metadata())
        return pa.unify_schemas(schemas, promote_options="permissive") if schemas else ROW_SCHEMA


def topic(
    name: str,
    *,
    bootstrap: str = "localhost:9092",
    start: str = "earliest",
    end: str = "latest",
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    config: str | None = None,
    options: Mapping[str, str] | None = None,
) -> TopicRows:
    """Return the records of a topic, which are read when one of the methods is called.

    `start` and `end` are boundaries as in a load. `config` is a settings file of Kafka's clients,
    by default the file in OTTLA_CONFIG. `options` are further options of the data source
    (`failOnDataLoss`, `skipUnreadable` …). Raises OttlaError for invalid arguments.
    """
    words = {"subscribe": name, BOOTSTRAP: bootstrap, "includeHeaders": "true"}
    words |= _place_words("starting", name, parse_boundary(start))
    words |= _place_words("ending", name, parse_boundary(end))
    if config is not None:
        words["config"] = config
    if columns is not None:
        words["columns"] = ",".join(columns)
    return TopicRows(words | dict(options or {}), limit)


def _place_words(side: str, topic_name: str, boundary: Boundary) -> dict[str, str]:
    """Return the options of the data source for the boundary."""
    if boundary.timestamp_ms is not None:
        latest = {"startingOffsetsByTimestampStrategy": "latest"}
        return {f"{side}Timestamp": str(boundary.timestamp_ms), **latest}
    if boundary.offsets is None:
        return {f"{side}Offsets": boundary.kind}
    places = {str(number): offset for number, offset in boundary.offsets.items()}
    return {f"{side}Offsets": json.dumps({topic_name: places})}


def table(
    target: str,
    *,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    store_options: Mapping[str, str] | None = None,
    as_of: datetime | None = None,
) -> TableRows:
    """Return the rows of a table in its current version. Raises OttlaError if there is no table.

    With `as_of`, a time with a zone, return the values of a history that were valid then, without
    `valid_from` and `valid_to`.
    """
    return TableRows(target, columns, limit, store_options, as_of)


def _limited(found: Iterable[Any], limit: int | None) -> Iterator[Any]:
    if limit is None:
        yield from found
        return
    left = limit
    for batch in found if left else ():
        yield batch[:left]
        left -= min(left, batch.num_rows)
        if not left:
            return


def _for_hadoop(address: str) -> str:
    """Return the address with the scheme of Spark's file systems, which is s3a for S3."""
    scheme, separator, rest = address.partition("://")
    return f"s3a://{rest}" if separator and scheme == "s3" else address


def register(spark: Any) -> None:
    """Register the data source `ottla` in the session `spark`, with filter pushdown.

    Spark finds the data source without this if its workers' Python has the package `pyspark_ottla`.
    For Spark Connect, a setting makes the server leave TLS and login options out of its event log,
    unless the session has set a pattern already.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Spark is an extra.

    from ottla.lake.edges.datasource import OttlaSource  # noqa: PLC0415  # As above.

    try:
        spark.dataSource.register(OttlaSource)
    except PySparkException as error:
        if "ALREADY_EXISTS" not in str(error.getCondition()):
            raise
    # Spark 4.0 does not have this setting, and ignores it.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect")
    if is_connect and not spark.conf.get(_REDACTION, ""):
        spark.conf.set(_REDACTION, _OPTIONS)
