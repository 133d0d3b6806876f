"""Proves a changelog table for `verify`, with the topic as far as the topic reaches back."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.differences import Differences
from ottla.lake.check.file_findings import FileFindings, checked_rows
from ottla.lake.check.findings import CheckFindings, is_among
from ottla.lake.check.log_bounds import LogBounds
from ottla.lake.check.replay import ChangelogFiles, ReplayedTopic, Replaying, bucket_tasks
from ottla.lake.job.task import explained_ledgers
from ottla.lake.job.workers import Workers
from ottla.lake.model.layout import DEAD
from ottla.lake.model.live import hidden_after
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import MODULUS, keyed_hash
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import Cluster, TopicDescription
from ottla.lake.source.ledgers import account_of, may_be_compacted, skipped_lines
from ottla.lake.store.store import FileStore
from ottla.lake.tables.table import LakeTable
from ottla.ledger.partition import PartitionLedger


@dataclass(slots=True)
class LettersFound:
    """The dead letters of a table, and the problems of their files."""

    rows: int = 0
    offsets: dict[int, list[int]] = field(default_factory=dict)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def hash_of(self, met: Mapping[int, Collection[int]], key: bytes) -> int:
        """Return the hash under `key` of the dead letters at the given offsets by partition."""
        total = 0
        for batch in self.batches:
            partition = batch.column("partition")[0].as_py()
            offsets = pa.array(met.get(partition, ()), pa.int64())
            inside = pc.is_in(batch.column("offset"), offsets)
            total += keyed_hash(batch.filter(inside), key)
        return total % MODULUS


def _read_letters(store: FileStore, manifests: Sequence[Manifest]) -> LettersFound:
    """Read the files of dead letters, which are few, and compare them with their manifests."""
    found = LettersFound()
    for manifest in manifests:
        for file in manifest.dead_letters:
            _read_file(store, file, found)
    return found


def _read_file(store: FileStore, file: DataFile, found: LettersFound) -> None:
    in_file = FileFindings()
    place = f"dead letters of partition {file.partition}"
    with DamagedFiles(store) as damaged:
        for batch in checked_rows(store, file, DEAD, damaged, in_file, place=place):
            offsets = batch.column("offset").to_pylist()
            found.offsets.setdefault(file.partition, []).extend(offsets)
            found.batches.append(batch)
    found.rows += in_file.rows
    found.problems += in_file.problems


def check_changelog(
    table: LakeTable,
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    cluster: Cluster | None,
    described: TopicDescription | None,
    bootstrap: Bootstrap | None,
    run: Workers,
    bounds: LogBounds,
) -> tuple[list[CheckFindings], list[PartitionLedger]]:
    """Check the table of these manifests, against the topic if a cluster is given.

    Returns the findings, and the ledgers of the replayed ranges.
    """
    whole = CheckFindings()  # Findings that belong to no bucket.
    letters = _read_letters(table.store, manifests)
    whole.dead_letters += letters.rows
    whole.of_dead_letters += letters.problems
    files = replace(
        _files(table, manifests, live, whole.of_files), bounds=bounds, left_out=letters.offsets
    )
    if cluster is None or described is None or bootstrap is None:
        return [whole, *run(bucket_tasks(files, None))], []
    begins, starts, ends = _reach(manifests, described)
    has_gaps = described.compacted or described.has_ledger
    with Replaying(files, bootstrap, has_gaps, run) as replaying:
        replay = _replay(replaying, begins, starts, ends, whole.of_topic)
        found = [whole, *run(bucket_tasks(files, replay))]
    if replay is None:
        return found, []
    whole.of_topic += _unlike_loads(replay, manifests, described, bootstrap)
    whole.of_topic += _unlike_letters(replay, letters, cluster, described, starts, ends)
    for partition, differences in sorted(_by_partition(found).items()):
        extra = _unexplained(cluster, described, partition, ends, differences)
        whole.compared += differences.compared
        whole.only_in_lake += differences.below_start + len(differences.extra) - len(extra)
        differences.extra = extra
        whole.of_topic += differences.of_changes(f"{described.topic}-{partition}")
    return found, [part.ledger for part in replay.parts]


def _by_partition(found: Sequence[CheckFindings]) -> dict[int, Differences]:
    sums: dict[int, Differences] = {}
    for one in found:
        for partition, differences in one.differences.items():
            sums.setdefault(partition, Differences()).add(differences)
    return sums


def _files(
    table: LakeTable,
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    problems: list[str],
) -> ChangelogFiles:
    newest = manifests[-1]
    assert newest.changelog is not None
    hidden: dict[str, DataFile] = {}
    for manifest in manifests:
        problems += [
            f"the manifest of commit {manifest.version}: {problem}"
            for problem in hidden_after(hidden, manifest)
        ]
    visible_by, hidden_by = _by_bucket(live), _by_bucket(hidden.values())
    for files in (*visible_by.values(), *hidden_by.values()):
        if sum(not file.closed for file in files) > 1:
            problems.append(f"bucket {files[0].partition} has two files")
    schemas = {
        file.path: manifest.table_schema
        for manifest in manifests
        for file in (*manifest.files, *manifest.hidden)
        if manifest.table_schema is not None
    }
    return ChangelogFiles(
        table.store,
        table.running,
        newest.topic,
        newest.changelog,
        visible_by,
        hidden_by,
        newest.table_schema,
        schemas,
    )


def _by_bucket(files: Iterable[DataFile]) -> dict[int, list[DataFile]]:
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    return found


def _reach(
    manifests: Sequence[Manifest], described: TopicDescription
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return where the table began to read, and the range of each partition to replay."""
    ends = dict(manifests[-1].positions)
    begins: dict[int, int] = {}
    starts: dict[int, int] = {}
    for manifest in manifests:
        for ledger in manifest.ledgers if manifest.kind in MOVES_POSITIONS else ():
            begins.setdefault(ledger.partition, ledger.start)
    for partition, end in ends.items():
        log_start = described.bounds[partition].log_start
        starts[partition] = min(end, max(begins.get(partition, 0), log_start))
    return begins, starts, ends


def _replay(
    replaying: Replaying,
    begins: dict[int, int],
    starts: dict[int, int],
    ends: dict[int, int],
    problems: list[str],
) -> ReplayedTopic | None:
    try:
        return replaying.replay(begins, starts, ends)
    except OttlaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        problems.append(error.message)
        return None


def _unlike_loads(
    replay: ReplayedTopic,
    manifests: Sequence[Manifest],
    described: TopicDescription,
    bootstrap: Bootstrap,
) -> list[str]:
    """Return what the replay found otherwise than the loads: unexplained or unreadable offsets."""
    problems = [
        f"{described.topic}-{ledger.partition} of the topic does not add up: {ledger}"
        for ledger in explained_ledgers(replay.parts, described, bootstrap)
        if not ledger.balances
    ]
    known = [one for manifest in manifests for one in manifest.skipped]
    spoilt = [one for part in replay.parts for one in part.skipped if not is_among(one, known)]
    lines = skipped_lines(described.topic, spoilt)
    return problems + [
        f"{line}: they could be read when they were loaded, and nothing can be compared there"
        for line in lines
    ]


def _unlike_letters(
    replay: ReplayedTopic,
    letters: LettersFound,
    cluster: Cluster,
    described: TopicDescription,
    starts: Mapping[int, int],
    ends: dict[int, int],
) -> Iterator[str]:
    """Yield how dead letters differ from the topic's records; compaction may have removed some."""
    met: dict[int, list[int]] = {}
    for part in replay.parts:
        met.setdefault(part.ledger.partition, []).extend(part.left_out)
    if sum(part.left_out_hash for part in replay.parts) % MODULUS != letters.hash_of(
        met, replay.key
    ):
        yield f"the dead letters differ from the records of {described.topic}"
    for partition, offsets in sorted(letters.offsets.items()):
        wanted = {one for one in offsets if one >= starts.get(partition, 0)}
        differences = Differences(extra=sorted(wanted.difference(met.get(partition, ()))))
        extra = _unexplained(cluster, described, partition, ends, differences)
        if extra:
            yield (
                f"{described.topic}-{partition}: dead letters that are no records of the topic: "
                f"{', '.join(map(str, extra[:10]))}"
            )


def _unexplained(
    cluster: Cluster,
    described: TopicDescription,
    partition: int,
    ends: dict[int, int],
    differences: Differences,
) -> list[int]:
    """Return the rows that are not records of the topic and that compaction does not explain."""
    if not differences.extra:
        return []
    wanted = Range(described.topic, partition, 0, ends[partition])
    account = account_of(cluster, wanted) if described.has_ledger else None
    is_explained = may_be_compacted(cluster, described, partition, account, len(differences.extra))
    return [] if is_explained else differences.extra
