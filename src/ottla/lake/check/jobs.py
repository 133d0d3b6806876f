"""Divides a verification into jobs: ranges of partitions with their files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ottla.lake.check.held import HeldFile
from ottla.lake.check.log_bounds import NO_BOUNDS, LogBounds
from ottla.lake.model.layout import buckets_of_table
from ottla.lake.model.live import left_out, live_after, live_letters, ranges_with_files
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema
from ottla.lake.model.plan import SPLIT_BYTES, Range
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import TopicDescription
from ottla.lake.store.store import FileStore
from ottla.ledger.partition import Unreadable


@dataclass(frozen=True, slots=True)
class RangeJob:
    """A range of a partition and the files that hold it. Can be pickled."""

    store: FileStore
    topic: str
    # None for files outside the ranges of all loads, which are checked alone.
    wanted: Range | None
    files: tuple[HeldFile, ...]
    # Ranges of the partition that loads left out as unreadable.
    skipped: tuple[Unreadable, ...] = ()
    # None: compare the files with their manifests only.
    bootstrap: Bootstrap | None = None
    described: TopicDescription | None = None

    @property
    def size_bytes(self) -> int:
        return sum(held.file.size_bytes for held in self.files)


def plan_jobs(
    store: FileStore,
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    foreign: Sequence[DataFile],
    *,
    bootstrap: Bootstrap | None = None,
    described: TopicDescription | None = None,
    bounds: LogBounds = NO_BOUNDS,
    split_bytes: int = SPLIT_BYTES,
) -> list[RangeJob]:
    """Return jobs that check each of `live` once, and compare all ranges that were loaded.

    `foreign` are files of other programs, by partition, which were read already: a job compares
    their typed columns, and their rows with the topic. A job has more than `split_bytes` of files
    only if it has a single file or its files overlap.
    """
    topic = manifests[-1].topic
    schemas: dict[str, TableSchema | None] = {
        file.path: manifest.table_schema for manifest in manifests for file in manifest.files
    }
    buckets = buckets_of_table(manifests[-1])
    replaced = _replaced(manifests, live, schemas) if foreign else {}
    rest = {
        file.path: HeldFile(file, schemas[file.path], bounds=bounds.of(file.path), buckets=buckets)
        for file in live
    }
    dead = {file.path: HeldFile(file, is_dead=True) for file in live_letters(manifests)}
    dead_of, skipped_of = _by_partition(manifests)
    jobs: list[RangeJob] = []
    for of_loads, of_range in ranges_with_files(manifests, [*live, *foreign]):
        for wanted, files in _pieces(of_loads, of_range, split_bytes):
            held = [
                rest.pop(file.path)
                if file.path in rest
                else HeldFile(
                    file,
                    manifests[-1].table_schema,
                    replaces=tuple(replaced.get(file.partition, ())),
                )
                for file in files
            ]
            held += [
                dead.pop(file.path)
                for file in dead_of.get(wanted.partition, ())
                if wanted.start <= file.start < wanted.end and file.path in dead
            ]
            skipped = tuple(skipped_of.get(wanted.partition, ()))
            jobs.append(RangeJob(store, topic, wanted, tuple(held), skipped, bootstrap, described))
    alone = (*rest.values(), *dead.values())
    return [
        *jobs,
        *(RangeJob(store, topic, None, (one,), (), bootstrap, described) for one in alone),
    ]


def _replaced(
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    schemas: Mapping[str, TableSchema | None],
) -> dict[int, list[tuple[DataFile, TableSchema | None]]]:
    """Return files of loads that other programs replaced, with schemas, by partition."""
    counted: dict[str, DataFile] = {}
    for manifest in manifests:
        live_after(counted, manifest)
    found: dict[int, list[tuple[DataFile, TableSchema | None]]] = {}
    for path in counted.keys() - {file.path for file in live}:
        file = counted[path]
        found.setdefault(file.partition, []).append((file, schemas[path]))
    return found


def _by_partition(
    manifests: Sequence[Manifest],
) -> tuple[dict[int, list[DataFile]], dict[int, list[Unreadable]]]:
    dead: dict[int, list[DataFile]] = {}
    skipped: dict[int, list[Unreadable]] = {}
    for file in live_letters(manifests):
        dead.setdefault(file.partition, []).append(file)
    for one in left_out(manifests):
        skipped.setdefault(one.partition, []).append(one)
    return dead, skipped


def _pieces(
    wanted: Range, files: Sequence[DataFile], split_bytes: int
) -> Iterator[tuple[Range, Sequence[DataFile]]]:
    """Cut a range into pieces of about `split_bytes`, between files that do not overlap."""
    start, first, size, behind = wanted.start, 0, 0, wanted.start
    for place, file in enumerate(files):
        is_full = size > 0 and size + file.size_bytes > split_bytes
        if is_full and start < behind <= file.start < wanted.end:
            yield replace(wanted, start=start, end=file.start), files[first:place]
            start, first, size = file.start, place, 0
        size += file.size_bytes
        behind = max(behind, file.end)
    yield replace(wanted, start=start), files[first:]
