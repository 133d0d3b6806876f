"""Derives the proof of a table again from its files and the topic, and reports each difference.

files      exist, have the bytes, columns and rows that their manifest hashes, each offset once
manifests  form a chain, their ranges touch, their ledgers balance
topic      holds, for every offset still in its log, the very row that the lake holds

Batches that could not be read when they were loaded stand in the manifests, and are no problem as
long as they cannot be read. Others that cannot be read by now, or again, are.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.changelogs.proving import prove_changelog
from ottla.lake.cluster import connect
from ottla.lake.decode.layout import DEAD, FileLayout, layout_of
from ottla.lake.decode.proving import TypedCheck
from ottla.lake.evidence import judged, may_be_compacted
from ottla.lake.folder.file_check import FileUnreadable, check_file, file_batches, foreign_batches
from ottla.lake.folder.files_present import files_present
from ottla.lake.folder.foreign_files import read_foreign, remaining
from ottla.lake.log.live import live_after, ranges_with_files
from ottla.lake.manifest import MOVES_POSITIONS, DataFile, Manifest, TableSchema
from ottla.lake.plan import Range, require_same_topic
from ottla.lake.proof import stored_hash, stored_hashes
from ottla.lake.reader import read_range
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.lake.source import Cluster, TopicDescription
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.overriding import overridden_by, without_overridden
from ottla.lake.tables.table import FilesOfOthers, LakeTable
from ottla.lake.telling import account_of, explained, skipped_lines, told, told_of_loss
from ottla.ledger.partition import PartitionLedger, RangeAccount, Told, Unreadable

# Differences named one by one for each range; the rest is counted.
_NAMED_MAX = 10
# How many offsets are compared row by row at a time; bounds the memory this takes.
_WINDOW_OFFSETS = 500_000
_read = partial(
    # What loads may have left out or changed, each by its own option.
    read_range,
    skip_unreadable=True,
    null_bad_timestamps=True,
)

_RowHashes = dict[int, list[tuple[int, int]]]


@dataclass(slots=True)
class Verification:
    """What was found. The table is proven where `problems` is empty."""

    topic: str
    loads: int = 0
    rows: int = 0
    hash: str = hash_text(0)
    # Rows whose offsets the topic still holds, compared one with the other.
    compared: int = 0
    # Rows that only the lake holds by now: retention or compaction took them from the topic.
    only_in_lake: int = 0
    ledgers: dict[int, PartitionLedger] = field(default_factory=dict)
    # What the brokers' own ledger says of all that was loaded, by partition; none of Kafka's.
    told: dict[int, Told] = field(default_factory=dict)
    # What the loads left out as unreadable, by the manifests.
    skipped: list[Unreadable] = field(default_factory=list)
    # Records that could not be decoded, which stand in the files of dead letters.
    dead_letters: int = 0
    # Files that tasks or loads left which did not count; the next load removes them.
    uncounted: list[str] = field(default_factory=list)
    # Problems of manifests that a load was built on by an operator's word, with that load.
    overridden: list[str] = field(default_factory=list)
    # What other programs replaced by other files with the same rows, as when they compact.
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return not self.problems


def verify(
    target: str,
    *,
    bootstrap: str | None,
    store_options: Mapping[str, str] | None = None,
    on_file: Callable[[str], None] = lambda _path: None,
) -> Verification:
    """Verify the table in `target`; against the topic too where `bootstrap` is given.

    Differences are reported, not raised. Raises OttlaError where there is no table, or where the
    cluster can't be asked.
    """
    table = existing_table(target, store_options)
    report = Verification("")
    # Before the manifests: a load that ends meanwhile has a manifest for its files.
    present = files_present(table.store)
    chain, live = _chain(table, report)
    agreement = table.audit(chain)
    report.problems += agreement.problems
    manifests = [manifest for manifest, _ in chain]
    _find_strays(table, present, manifests, agreement.others, report)
    if not manifests:
        return report
    newest = manifests[-1]
    report.topic = newest.topic
    cluster = connect(bootstrap) if bootstrap else None
    try:
        described = cluster.describe(newest.topic) if cluster else None
        if cluster is not None and described is not None:
            with told_of_loss(cluster, described, newest):
                require_same_topic(
                    newest.topic,
                    newest.topic_id,
                    described.topic_id,
                    newest.positions,
                    described.bounds,
                )
        if newest.changelog is not None:
            proof = prove_changelog(
                table.store, manifests, live, cluster, described, bootstrap, on_file
            )
            report.rows, total = proof.rows, proof.hash
            report.compared, report.only_in_lake = proof.compared, proof.only_in_lake
            report.problems += proof.problems
        else:
            live = remaining(live, agreement.others)
            foreign = read_foreign(table.store, agreement.others)
            report.replaced += foreign.replaced
            report.problems += foreign.problems
            report.rows, total = foreign.rows, foreign.hash
            held = _HeldFiles(table.store, manifests)
            for file in held.dead_letters:
                on_file(file.path)
                found = check_file(table.store, file, newest.topic, DEAD)
                report.dead_letters += found.rows
                report.problems += found.problems
            for file in live:
                on_file(file.path)
                found = check_file(table.store, file, newest.topic, held.layout(file))
                report.rows += found.rows
                report.problems += found.problems
                total += found.hash
            if cluster is not None and described is not None:
                for wanted, files in ranges_with_files(manifests, [*live, *foreign.files]):
                    _compare(held, wanted, files, cluster, described, report)
                report.problems += held.typed_problems(live, cluster, described)
        if cluster is not None and described is not None and described.has_ledger:
            _ask_ledger(cluster, report)
        report.hash = hash_text(total)
    finally:
        if cluster is not None:
            cluster.close()
    if report.hash != newest.total_hash or report.rows != newest.total_rows:
        report.problems.append(
            f"the table holds {report.rows} rows with hash {report.hash}; its newest manifest "
            f"says {newest.total_rows} rows with hash {newest.total_hash}"
        )
    return report


def _chain(
    table: LakeTable, report: Verification
) -> tuple[list[tuple[Manifest, str | None]], list[DataFile]]:
    """Return manifests that can be read, with digests, and the files that count after the last.

    Reports what is wrong with the chain of them.
    """
    chain: list[tuple[Manifest, str | None]] = []
    live: dict[str, DataFile] = {}
    for link in without_overridden(table.links()):
        report.problems += link.problems
        if link.manifest is None:
            continue
        chain.append((link.manifest, link.after.digest))
        report.problems += [
            f"the manifest {link.name}: {problem}" for problem in live_after(live, link.manifest)
        ]
        report.loads += 1
        report.skipped += link.manifest.skipped
        for ledger in link.manifest.ledgers if link.manifest.kind in MOVES_POSITIONS else ():
            before = report.ledgers.get(ledger.partition)
            if before is None:
                report.ledgers[ledger.partition] = ledger
            elif before.end == ledger.start:
                report.ledgers[ledger.partition] = before.followed_by(ledger)
    report.overridden += overridden_by(manifest for manifest, _ in chain)
    return chain, list(live.values())


def _find_strays(
    table: LakeTable,
    present: tuple[list[str], list[str]],
    manifests: Sequence[Manifest],
    others: FilesOfOthers,
    report: Verification,
) -> None:
    named = {
        file.path for manifest in manifests for file in (*manifest.files, *manifest.dead_letters)
    }
    named |= others.known
    foreign, uncounted = ([path for path in paths if path not in named] for paths in present)
    if table.format != "parquet":
        # Its readers go by the log: other programs may leave there what does not count, too.
        foreign, uncounted = [], sorted((*foreign, *uncounted))
    report.problems += [
        f"{path} does not belong to the table: no load names it; move it elsewhere"
        for path in foreign
    ]
    report.uncounted += uncounted


def _compare(
    held: "_HeldFiles",
    wanted: Range,
    files: list[DataFile],
    cluster: Cluster,
    described: TopicDescription,
    report: Verification,
) -> None:
    """Compare one range of the lake with the topic: by sums, and row by row where those differ."""
    floor = min(wanted.end, max(wanted.start, described.bounds[wanted.partition].log_start))
    kept = Range(wanted.topic, wanted.partition, floor, wanted.end)
    files = [*files, *held.dead_letters_of(wanted)]
    present = [file for file in files if _exists(held.store, file)]
    has_holes = described.compacted or described.has_ledger
    account = RangeAccount(kept.partition, kept.start, kept.end, has_holes)
    try:
        topic_count, topic_hash = _sum(_read(kept, cluster, account))
    except OttlaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        report.problems.append(error.message)
        return
    spoilt = [one for one in account.skipped if not _is_among(one, report.skipped)]
    report.problems += [
        f"{line}: they could be read when they were loaded, and nothing can be compared there"
        for line in skipped_lines(wanted.topic, spoilt)
    ]
    lake_count, lake_hash = _sum(_lake_rows(held, present, kept))
    report.only_in_lake += max(0, sum(file.rows for file in present) - lake_count)
    found = account_of(cluster, kept) if described.has_ledger else None
    ledger = account.ledger().settled(told(found)) if found else account.ledger_with_gaps()
    (ledger,) = judged([ledger], cluster, kept.topic)
    if not ledger.balances:
        report.problems.append(f"{kept} of the topic does not add up: {ledger}")
    if (topic_count, topic_hash) == (lake_count, lake_hash):
        report.compared += topic_count
        return
    differences = _Differences()
    for start in range(kept.start, kept.end, _WINDOW_OFFSETS):
        window = Range(kept.topic, kept.partition, start, min(start + _WINDOW_OFFSETS, kept.end))
        window_account = RangeAccount(window.partition, window.start, window.end, has_holes)
        differences.add(
            _hashes(_read(window, cluster, window_account)),
            _hashes(_lake_rows(held, present, window)),
        )
    # Rows of the lake that the topic no longer holds: reported above.
    differences.extra = [o for o in differences.extra if not _covers(account.skipped, o)]
    again = [o for o in differences.missing if _covers(_of(report.skipped, kept.partition), o)]
    if again:
        differences.missing = sorted(set(differences.missing) - set(again))
        report.problems.append(
            f"{wanted.topic}-{wanted.partition}: readable again since they were left out as "
            f"unreadable: {_named(again)}; load into a new folder to have them"
        )
    if may_be_compacted(cluster, described, kept.partition, found, len(differences.extra)):
        report.only_in_lake += len(differences.extra)
        differences.extra.clear()
    report.compared += differences.compared
    report.problems += differences.told(f"{wanted.topic}-{wanted.partition}")
    why = found and explained(found, differences.extra + differences.altered)
    if why:
        report.problems.append(f"{wanted.topic}-{wanted.partition}: of these {why}")


def _is_among(one: Unreadable, known: Sequence[Unreadable]) -> bool:
    """Whether all offsets of `one` were unreadable before. No offset is in `known` twice."""
    before = sum(
        max(0, min(one.end, other.end) - max(one.start, other.start))
        for other in _of(known, one.partition)
    )
    return before == one.end - one.start


def _of(skipped: Iterable[Unreadable], partition: int) -> list[Unreadable]:
    return [one for one in skipped if one.partition == partition]


def _covers(skipped: Iterable[Unreadable], offset: int) -> bool:
    return any(one.start <= offset < one.end for one in skipped)


def _ask_ledger(cluster: Cluster, report: Verification) -> None:
    """Let the brokers account for all that was loaded, as far as it goes."""
    for partition, ledger in report.ledgers.items():
        account = account_of(cluster, Range(report.topic, partition, ledger.start, ledger.end))
        if account is None:
            if not ledger.unreadable:
                report.problems.append(
                    f"{report.topic}-{partition}: the broker cannot walk its log, which is "
                    "damaged; `ottla log dump` tells where"
                )
            continue
        report.told[partition] = told(account)
        if account.unexplained:
            report.problems.append(
                f"{report.topic}-{partition}: the broker cannot explain {account.unexplained} of "
                f"the offsets {ledger.start} to {ledger.end}; `ottla log ledger` tells more"
            )


class _HeldFiles:
    """The files of a table, and what the commit that added each says of its columns."""

    def __init__(self, store: FileStore, manifests: Sequence[Manifest]) -> None:
        self.store = store
        self.dead_letters = [file for manifest in manifests for file in manifest.dead_letters]
        self._schemas: dict[str, TableSchema | None] = {
            file.path: manifest.table_schema for manifest in manifests for file in manifest.files
        }
        self._dead = {file.path for file in self.dead_letters}

    def layout(self, file: DataFile) -> FileLayout:
        return DEAD if file.path in self._dead else layout_of(self._schemas[file.path])

    def dead_letters_of(self, wanted: Range) -> list[DataFile]:
        """Files of dead letters in a range that was loaded."""
        return [
            file
            for file in self.dead_letters
            if file.partition == wanted.partition and wanted.start <= file.start < wanted.end
        ]

    def typed_problems(
        self, live: Sequence[DataFile], cluster: Cluster, described: TopicDescription
    ) -> Iterator[str]:
        """Decode again what typed columns came from, and yield where they differ."""
        checks: dict[str, TypedCheck] = {}
        for file in live:
            schema = self._schemas[file.path]
            if schema is None:
                continue
            words = json.dumps(asdict(schema), sort_keys=True)
            check = checks.get(words) or checks.setdefault(words, TypedCheck(schema))
            log_start = described.bounds[file.partition].log_start
            start = min(file.end, max(file.start, log_start))
            wanted = Range(described.topic, file.partition, start, file.end)
            everything = Range(described.topic, file.partition, file.start, file.end)
            if check.keeps_raw:
                found = check.of_own_rows(_lake_rows(self, [file], everything))
            else:
                account = RangeAccount(file.partition, start, file.end, True)
                rows = _read(wanted, cluster, account)
                found = check.of_topic(rows, _lake_rows(self, [file], wanted))
            yield from (f"{file.path}: {problem}" for problem in found)


@dataclass(slots=True)
class _Differences:
    """Offsets at which topic and lake do not hold the same row once."""

    compared: int = 0
    missing: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

    def add(self, topic: _RowHashes, lake: _RowHashes) -> None:
        both = topic.keys() & lake.keys()
        self.compared += len(both)
        self.missing += sorted(topic.keys() - both)
        self.extra += sorted(lake.keys() - both)
        self.doubled += sorted(offset for offset, found in lake.items() if len(found) > 1)
        self.altered += sorted(
            offset for offset in both if any(found != topic[offset][0] for found in lake[offset])
        )

    def told(self, partition: str) -> list[str]:
        return [
            f"{partition}: {what}: {_named(offsets)}"
            for what, offsets in (
                ("missing from the lake", self.missing),
                ("in the lake, but not in the topic", self.extra),
                ("doubled in the lake", self.doubled),
                ("altered in the lake", self.altered),
            )
            if offsets
        ]


def _named(offsets: list[int]) -> str:
    more = f" and {len(offsets) - _NAMED_MAX} more" if len(offsets) > _NAMED_MAX else ""
    return ", ".join(map(str, offsets[:_NAMED_MAX])) + more


def _lake_rows(
    held: "_HeldFiles", files: Iterable[DataFile], wanted: Range
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `files` whose offsets lie in `wanted`."""
    for file in files:
        if file.start >= wanted.end or file.end <= wanted.start:
            continue
        try:
            # Without a digest it is another program's, and may hold other partitions, too.
            batches = (
                file_batches(held.store, file.path, held.layout(file))
                if file.sha256
                else foreign_batches(held.store, file.path)
            )
            for batch in batches:
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, wanted.start), pc.less(offsets, wanted.end)
                )
                if not file.sha256:
                    of_it = pc.equal(batch.column("partition"), wanted.partition)
                    inside = pc.and_(inside, of_it)
                yield batch.filter(inside)
        except (OSError, FileUnreadable):
            continue  # Reported already by the check of the file.


def _exists(store: FileStore, file: DataFile) -> bool:
    try:
        store.size(file.path)
    except FileNotFoundError:
        return False
    return True


def _sum(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """Return how many rows there are, and their hash."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total = (total + stored_hash(batch)) % MODULUS
    return count, total


def _hashes(batches: Iterable[pa.RecordBatch]) -> _RowHashes:
    """Return the hashes of the rows at each offset: one, unless an offset is doubled."""
    found: _RowHashes = {}
    for batch in batches:
        low, high = stored_hashes(batch)
        offsets = batch.column("offset").to_pylist()
        for offset, a, b in zip(offsets, low.tolist(), high.tolist(), strict=True):
            found.setdefault(offset, []).append((a, b))
    return found
