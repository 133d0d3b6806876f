"""The PySpark data source `ottla`: a topic as a DataFrame.

    ottla.lake.register(spark)
    frame = spark.read.format("ottla").option("topic", "flights").load()

| option | means | default |
|---|---|---|
| topic | the topic to read | |
| bootstrap | `host:port,…` of Ottla or Apache Kafka | localhost:9092 |
| start | earliest, latest, @MILLISECONDS, PARTITION:OFFSET,… or last-load | earliest |
| end | earliest, latest, @MILLISECONDS or PARTITION:OFFSET,… | latest |
| table | the folder whose last load `last-load` means | |
| columns | a comma-separated choice of columns: fewer cross to the JVM | all |
| offsetsPerTask | how many offsets one task reads at most | 1000000 |
| failOnDataLoss | fail where records were deleted since the last load or the plan | true |
| onBadTimestamp | a timestamp that Spark's type cannot hold: fail, or null | fail |
| skipUnreadable | leave out batches that cannot be read, with a warning in the task's log | false |

Partitions that PARTITION:OFFSET,… does not name start at the earliest and end at the latest offset.
One task for each range of offsets. Aborted transactions are left out. A range whose offsets are
not all accounted for is an error, never a silent gap.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.cluster import connect
from ottla.lake.evidence import judged
from ottla.lake.loads.boundaries import limits_of_read
from ottla.lake.loss import loss_lines, losses, require_no_loss
from ottla.lake.plan import Range, parse_boundary, ranges
from ottla.lake.reader import read_range
from ottla.lake.schema import ROW_SCHEMA, SPARK_TYPES
from ottla.lake.table import Table
from ottla.lake.telling import skipped_lines
from ottla.ledger.partition import PartitionLedger, RangeAccount

_log = logging.getLogger(__name__)

_LOSS = 'Read on without them: .option("failOnDataLoss", "false")'
_OPTIONS = (
    "topic",
    "bootstrap",
    "start",
    "end",
    "table",
    "columns",
    "offsetsPerTask",
    "skipUnreadable",
    "failOnDataLoss",
    "onBadTimestamp",
)


@dataclass(frozen=True, slots=True)
class _Options:
    topic: str
    bootstrap: str
    start: str
    end: str
    table: str | None
    columns: tuple[str, ...]
    offsets_per_task: int
    skip_unreadable: bool
    fail_on_data_loss: bool
    null_bad_timestamps: bool


def _parse(options: Mapping[str, str]) -> _Options:
    """Read the options (Spark does not keep their case). Raises OttlaError for wrong ones."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given.keys() - {name.lower() for name in _OPTIONS} - {"path"}:
        raise _wrong(f"there is no option {name!r}; the options are {', '.join(_OPTIONS)}")
    if "topic" not in given:
        raise _wrong('which topic? Add .option("topic", NAME)')
    columns = tuple(
        name.strip() for name in given.get("columns", ",".join(ROW_SCHEMA.names)).split(",")
    )
    for name in columns:
        if name not in ROW_SCHEMA.names:
            raise _wrong(f"there is no column {name!r}; the columns are {ROW_SCHEMA.names}")
    per_task = given.get("offsetspertask", "1000000")
    if not per_task.isdigit() or int(per_task) == 0:
        raise _wrong(f"offsetsPerTask is {per_task!r}, not a number of offsets above 0")
    on_bad_timestamp = given.get("onbadtimestamp", "fail").lower()
    if on_bad_timestamp not in ("fail", "null"):
        raise _wrong(f"onBadTimestamp is {on_bad_timestamp!r}, not fail or null")
    return _Options(
        topic=given["topic"],
        bootstrap=given.get("bootstrap", "localhost:9092"),
        start=given.get("start", "earliest"),
        end=given.get("end", "latest"),
        table=given.get("table"),
        columns=columns,
        offsets_per_task=int(per_task),
        skip_unreadable=_flag(given, "skipUnreadable", "false"),
        fail_on_data_loss=_flag(given, "failOnDataLoss", "true"),
        null_bad_timestamps=on_bad_timestamp == "null",
    )


def _flag(given: Mapping[str, str], name: str, default: str) -> bool:
    text = given.get(name.lower(), default).lower()
    if text not in ("true", "false"):
        raise _wrong(f"{name} is {text!r}, not true or false")
    return text == "true"


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"data source ottla: {what}")


class OttlaSource(DataSource):  # type: ignore[misc]  # pyspark's classes are untyped here.
    """Registered under the name `ottla`; see the module's page for its options."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        return ", ".join(f"{name} {SPARK_TYPES[name]}" for name in _parse(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's signature.
        return OttlaReader(_parse(self.options))


class RangePartition(InputPartition):  # type: ignore[misc]
    """One task's range."""

    def __init__(self, wanted: Range, compacted: bool, gone_below: int) -> None:
        super().__init__(None)
        self.wanted = wanted
        self.compacted = compacted
        self.gone_below = gone_below  # Below it a deletion is no loss.


class OttlaReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: _Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        start, end = parse_boundary(options.start), parse_boundary(options.end)
        positions = _last_load(options)
        cluster = connect(options.bootstrap)
        try:
            described = cluster.describe(options.topic)
            limits = limits_of_read(cluster, described, start, end, positions)
        finally:
            cluster.close()
        self._require_no_loss(limits.lost)
        planned = ranges(
            options.topic,
            limits.starts,
            limits.ends,
            offsets_max=options.offsets_per_task,
            tasks_min=len(limits.starts),
            topic_id=described.topic_id,
        )
        return [
            RangePartition(wanted, described.compacted, limits.gone_below[wanted.partition])
            for wanted in planned
        ]

    def read(self, partition: RangePartition) -> Iterator[pa.RecordBatch]:
        wanted = partition.wanted
        account = RangeAccount(wanted.partition, wanted.start, wanted.end, partition.compacted)
        names = list(self._options.columns)
        cluster = connect(self._options.bootstrap)
        try:
            for batch in read_range(
                wanted,
                cluster,
                account,
                skip_unreadable=self._options.skip_unreadable,
                null_bad_timestamps=self._options.null_bad_timestamps,
            ):
                yield batch.select(names)
            (ledger,) = judged([account.ledger_with_gaps()], cluster, wanted.topic)
        finally:
            cluster.close()
        for line in skipped_lines(wanted.topic, account.skipped):
            _log.warning("%s", line)
        self._require_no_loss(losses([ledger], {wanted.partition: partition.gone_below}))
        if not ledger.balances:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{ledger.unexplained} offsets of {wanted} are unexplained: "
                f"{ledger}; look at the log with `ottla log dump`",
            )

    def _require_no_loss(self, found: Mapping[PartitionLedger, int]) -> None:
        if self._options.fail_on_data_loss:
            require_no_loss(self._options.topic, found, _LOSS)
        for line in loss_lines(self._options.topic, found):
            _log.warning("%s", line)


def _last_load(options: _Options) -> Mapping[int, int]:
    if options.table is None:
        if "last-load" in (options.start, options.end):
            raise _wrong('last-load of which table? Add .option("table", DIR)')
        return {}
    manifest, _ = Table.open(options.table).latest()
    return manifest.positions if manifest else {}
