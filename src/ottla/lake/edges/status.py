"""The status of a table: its commits, its live files, and its lag behind the topic."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted, iso
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.source.cluster import LOOK_PATIENCE_S, Cluster, TopicBounds, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.tables.data_files import files_present
from ottla.lake.tables.opening import existing_table
from ottla.ledger.partition import PartitionLedger
from ottla.record.reader import batches

TERMS = (
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "absent",
    "dead_letters",
    "keyless",
)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The status of one partition: the table's position and its lag."""

    partition: int
    position: int
    end: int | None = None  # The topic's end; None if the cluster was not asked.
    lag_s: float | None = None

    @property
    def lag_offsets(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The status of a whole table."""

    table: str
    format: str
    topic: str | None = None
    topic_id: str | None = None
    commits: int = 0
    loads: int = 0
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    last_load_ms: int | None = None
    writer_epoch: int = 0
    # Problems that an operator has overridden.
    overridden: tuple[str, ...] = ()
    # Files of loads that are not committed, or not yet.
    orphans: tuple[str, ...] = ()
    partitions: tuple[PartitionLag, ...] = ()
    # All rows with an earlier event time are loaded; None if unknown, or without event times.
    watermark_ms: int | None = None
    late_rows: int = 0  # Rows that were loaded with event times before the watermark.
    held_back: tuple[str, ...] = ()  # Partitions held back by open transactions, a line for each.

    @property
    def lag_offsets(self) -> int | None:
        found = [one.lag_offsets for one in self.partitions]
        known = [one for one in found if one is not None]
        return sum(known) if known else None

    @property
    def lag_s(self) -> float | None:
        """Return the age of the oldest record that is not loaded yet; 0 if all are loaded."""
        if self.lag_offsets is None:
            return None
        return max((one.lag_s for one in self.partitions if one.lag_s is not None), default=0.0)

    @property
    def complete(self) -> str:
        """Return a description of the watermark; empty if there is none."""
        if self.watermark_ms is None:
            return ""
        return f"all before {iso(self.watermark_ms)[:19].replace('T', ' ')} UTC is in"

    def answer(self) -> dict[str, Any]:
        """Return the whole status as JSON values."""
        found = asdict(self)
        del found["last_load_ms"]
        return found | {
            "last_load": None if self.last_load_ms is None else iso(self.last_load_ms),
            "watermark": None if self.watermark_ms is None else iso(self.watermark_ms),
            "lag_offsets": self.lag_offsets,
            "lag_s": self.lag_s,
            "partitions": self.rows_by_partition(),
        }

    def rows_by_partition(self) -> list[dict[str, Any]]:
        """Return one row, as a dict, for each partition."""
        return [{**asdict(one), "lag_offsets": one.lag_offsets} for one in self.partitions]


def status(
    target: str, bootstrap: str | None, store_options: Mapping[str, str] | None = None
) -> TableStatus:
    """Return the status of a table, with its lag if `bootstrap` is given."""
    table = existing_table(target, store_options)
    # List files before reading manifests: if a load commits in between, its files have a manifest.
    _, present = files_present(table.store)
    manifests = list(table.history())
    ends: dict[int, int] | None = None
    first: dict[int, int] = {}
    held: list[str] = []
    if bootstrap is not None and manifests:
        newest = manifests[-1]
        with closing(connect(bootstrap, LOOK_PATIENCE_S)) as cluster:
            described = cluster.describe(newest.topic)
            _require_same(newest, described)
            ends = {p: bound.end for p, bound in described.bounds.items()}
            behind = {
                p: max(newest.positions.get(p, 0), bound.log_start)
                for p, bound in described.bounds.items()
                if newest.positions.get(p, 0) < bound.end
            }
            first = first_times(cluster, newest.topic, behind)
            held = held_back_in(cluster, bootstrap, described, ends)
    found = table_status(table.store.url, table.format, manifests, present, ends, first, now_ms())
    return replace(found, held_back=tuple(held))


def _require_same(newest: Manifest, described: TopicBounds) -> None:
    if newest.topic_id and described.topic_id and newest.topic_id != described.topic_id:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"topic {newest.topic} was deleted and created anew since the last load (its id was "
            f"{newest.topic_id} and is {described.topic_id}); --offline shows the table alone",
        )


def table_status(
    table: str,
    table_format: str,
    manifests: Sequence[Manifest],
    present: Sequence[str],
    ends: Mapping[int, int] | None,
    first_times_ms: Mapping[int, int],
    now_ms: int,
) -> TableStatus:
    """Return the status of a table. `present` are the paths of all files that tasks wrote.

    `ends` are the end offsets of the topic's partitions; None if the cluster was not asked.
    """
    if not manifests:
        return TableStatus(table, table_format, orphans=tuple(sorted(present)))
    newest, live = manifests[-1], dict[str, DataFile]()
    named: set[str] = set()
    for one in manifests:
        live_after(live, one)
        named |= {file.path for file in (*one.files, *one.dead_letters)}
    loads = [one for one in manifests if one.kind == "load"]
    partitions = newest.positions.keys() | (ends or {}).keys()
    return TableStatus(
        table=table,
        format=table_format,
        topic=newest.topic,
        topic_id=newest.topic_id,
        commits=len(manifests),
        loads=len(loads),
        rows=newest.total_rows,
        files=len(live),
        size_bytes=bytes_of_files(live.values()),
        last_load_ms=loads[-1].created_ms if loads else None,
        writer_epoch=newest.writer_epoch,
        overridden=tuple(problem for one in manifests for problem in one.overridden),
        orphans=tuple(sorted(set(present) - named)),
        partitions=tuple(
            PartitionLag(
                partition=p,
                position=newest.positions.get(p, 0),
                end=None if ends is None else ends.get(p),
                lag_s=lag_s(first_times_ms.get(p), now_ms),
            )
            for p in sorted(partitions)
        ),
        watermark_ms=newest.events.watermark_ms if newest.events else None,
        late_rows=sum(sum(one.events.late.values()) for one in manifests if one.events),
    )


def first_times(cluster: Cluster, topic: str, starts: Mapping[int, int]) -> dict[int, int]:
    """Return the time of the first record at or after each start, if it can be read."""
    found = {}
    for partition, start in starts.items():
        try:
            first_ms = first_time_ms(cluster.peek(topic, partition, start), start)
        except OttlaError as error:
            # The log is damaged there, or the offset was deleted. The next load reports it.
            if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
                raise
            continue
        if first_ms is not None:
            found[partition] = first_ms
    return found


def first_time_ms(buffer: bytes, offset: int) -> int | None:
    """Return the time of the record at `offset`, from the header of its batch in `buffer`.

    For a record that is not the first of its batch, it is the batch's latest time. None if the
    buffer does not have the batch, or the batch has no time.
    """
    for _, header in batches(buffer):
        if header.last_offset >= offset:
            starts_here = header.base_offset >= offset and not header.is_log_append_time
            found = header.base_timestamp if starts_here else header.max_timestamp
            return found if found >= 0 else None
    return None


def lag_s(first_ms: int | None, now_ms: int) -> float | None:
    """Return the age of a record in seconds; 0 if its timestamp is in the future."""
    return None if first_ms is None else max(0, now_ms - first_ms) / 1000


def now_ms() -> int:
    """Return the time of the system's clock in milliseconds."""
    return time.time_ns() // 1_000_000


def commits(manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Return a row, a dict, for each commit, in order; `on_record` has remarks on it."""
    return [
        {
            "version": one.version,
            "kind": one.kind,
            "created_ms": one.created_ms,
            "time": iso(one.created_ms),
            "rows": one.rows,
            "files": len(one.files),
            "size_bytes": bytes_of_files(one.files),
            "removed_files": len(one.removed),
            "total_rows": one.total_rows,
            "topic_id": one.topic_id,
            "writer_epoch": one.writer_epoch,
            "on_record": on_record(one),
        }
        for one in manifests
    ]


def on_record(manifest: Manifest) -> list[str]:
    """Return remarks on a commit: losses, overridden problems, dead letters, new columns."""
    lines = [
        f"{counted(count, 'offset')} of partition {partition} lost, which was accepted"
        for partition, count in manifest.accepted_loss.items()
    ]
    lines += [f"overridden: {problem}" for problem in manifest.overridden]
    unreadable = sum(one.end - one.start for one in manifest.skipped)
    if unreadable:
        lines.append(f"{counted(unreadable, 'offset')} left out as unreadable")
    dead = sum(file.rows for file in manifest.dead_letters)
    if dead:
        lines.append(counted(dead, "dead letter"))
    lines += [f"columns: {change.what}" for change in manifest.schema_changes]
    if manifest.kind == "epoch":
        lines.append(f"a writer started with epoch {manifest.writer_epoch}")
    return lines


def bytes_of_files(files: Iterable[DataFile]) -> int:
    """Return the total size of the files in bytes."""
    return sum(file.size_bytes for file in files)


def terms_of(ledgers: Sequence[PartitionLedger]) -> dict[str, int]:
    """Return the sums of all counts of the ledgers, and `unexplained`, by name."""
    found = {term: sum(getattr(one, term) for one in ledgers) for term in TERMS}
    return {**found, "unexplained": sum(abs(one.unexplained) for one in ledgers)}
