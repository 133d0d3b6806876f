"""Checks manifests against each other and derives the state of a table after each commit. Pure.

The files, skipped offsets and ledgers of a manifest must agree. A manifest also has values that can
be derived from it and its predecessors: positions, sums, and the digest of the previous manifest.
This module derives them, and reports a manifest with other values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ottla.lake.model.event_times import (
    By,
    EventTimes,
    contradictions,
    folder_of,
    is_bucket,
    settled,
)
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest, sums
from ottla.lake.model.row_hash import hash_text
from ottla.ledger.partition import PartitionLedger

DATA_FOLDER = "data"
# Programs that clean up a table's folder skip names that begin with an underscore.
DEAD_LETTERS_FOLDER = "_dead_letters"
HIDDEN_FOLDER = "_ottla/hidden"


def in_bucket(path: str, by: By, bucket: str) -> str:
    """Return the path of a data file, inside the folder of its event-time bucket if it has one."""
    return path.replace(f"{DATA_FOLDER}/", f"{DATA_FOLDER}/{folder_of(by, bucket)}", 1)


def letters_path(path: str) -> str:
    """Return the path of the dead letters that belong to the data file of this path."""
    return path.replace(f"{DATA_FOLDER}/", f"{DEAD_LETTERS_FOLDER}/", 1)


def of_files(manifest: Manifest) -> Iterator[str]:
    """Yield contradictions between the manifest's files and its other fields.

    The rules depend on the manifest's kind.
    """
    by = manifest.events.by if manifest.events else "none"
    yield from _of_paths(manifest.files, DATA_FOLDER, by)
    letters = (*manifest.dead_letters, *manifest.removed_dead_letters)
    yield from _of_paths(letters, DEAD_LETTERS_FOLDER)
    yield from _of_paths(manifest.removed, DATA_FOLDER, by)
    yield from _of_paths((*manifest.hidden, *manifest.removed_hidden), HIDDEN_FOLDER)
    if manifest.kind not in ("changelog", "epoch") and manifest.changelog is not None:
        yield f"it is a {manifest.kind}, which no changelog table has"
    if manifest.kind != "changelog" and (manifest.hidden or manifest.removed_hidden):
        yield "it has hidden files, which only changelogs have"
    if manifest.kind not in ("compaction", "replacement") and manifest.removed_dead_letters:
        yield f"it removes dead letters, which no {manifest.kind} does"
    match manifest.kind:
        case "load":
            if manifest.removed:
                yield "it removes files, which no load does"
            yield from _of_load(manifest)
        case "epoch":
            if manifest.files or manifest.removed or manifest.ledgers or manifest.dead_letters:
                yield "it has files or ledgers, which no change of the writer epoch has"
        case "compaction":
            yield from _of_compaction(manifest)
        case "changelog":
            yield from _of_changelog(manifest)
        case "replacement":
            yield from _of_load(manifest)
            yield from _of_replacement(manifest)


def _of_paths(files: Sequence[DataFile], folder: str, by: By = "none") -> Iterator[str]:
    for file in files:
        if not is_bucket(by, file.event):
            yield f"it names {file.path} of the {by} {file.event!r}"
        elif PurePosixPath(file.path).parent != PurePosixPath(folder, folder_of(by, file.event)):
            yield f"it names {file.path}, which is not in the table's folder {folder}"
    if len({file.path for file in files}) < len(files):
        yield "it names a file twice"


def _of_load(manifest: Manifest) -> Iterator[str]:
    """Yield differences of files, dead letters and skipped offsets from the ledgers."""
    by_partition = _by_partition(manifest.files)
    for ledger in manifest.ledgers:
        partition, files = ledger.partition, by_partition.pop(ledger.partition, [])
        if sum(file.rows for file in files) != ledger.loaded:
            yield f"its files and its ledger of partition {partition} count different rows"
        if not all(_touch_in_order(each, ledger) for each in _by_event(files)):
            yield f"its files of partition {partition} do not lie in its ledger, in order"
    for partition in sorted(by_partition):
        yield f"it has files of partition {partition}, and no ledger of it"
    yield from _of_left_out(manifest)


def _of_left_out(manifest: Manifest) -> Iterator[str]:
    """Yield differences of dead letters and skipped offsets from the ledgers."""
    dead = {p: sum(f.rows for f in of) for p, of in _by_partition(manifest.dead_letters).items()}
    skipped: dict[int, int] = {}
    for one in manifest.skipped:
        skipped[one.partition] = skipped.get(one.partition, 0) + one.end - one.start
    for ledger in manifest.ledgers:
        partition = ledger.partition
        if skipped.pop(partition, 0) != ledger.unreadable:
            yield f"it does not name the unreadable offsets that partition {partition} counts"
        if dead.pop(partition, 0) != ledger.dead_letters:
            yield f"it does not hold the dead letters that partition {partition} counts"
    for partition in sorted(skipped.keys() | dead.keys()):
        yield f"it has skipped offsets of partition {partition}, and no ledger of it"
    yield from _of_loss(manifest)


def _of_loss(manifest: Manifest) -> Iterator[str]:
    """Check that the accepted losses are not larger than the ledgers allow.

    A load may lose deleted offsets. A replacement may also lose offsets that were compacted, are
    unreadable, or are absent.
    """
    gone: dict[int, int] = {}
    for ledger in manifest.ledgers:
        more = ledger.compacted + ledger.unreadable + ledger.absent
        is_replacement = manifest.kind == "replacement"
        count = ledger.deleted + (more if is_replacement else 0)
        gone[ledger.partition] = gone.get(ledger.partition, 0) + count
    for partition, count in sorted(manifest.accepted_loss.items()):
        if not 0 <= count <= gone.get(partition, 0):
            yield (
                f"it accepts the loss of {count} offsets of partition {partition}, of which its "
                f"ledger counts {gone.get(partition, 0)}"
            )


def _of_changelog(manifest: Manifest) -> Iterator[str]:
    """Check that each bucket has one file of each kind, and no more new rows than were read."""
    yield from _of_left_out(manifest)
    if manifest.changelog is None:
        yield "it does not say what it keeps of a key"
        return
    for file in (*manifest.files, *manifest.hidden):
        if not 0 <= file.partition < manifest.changelog.buckets or file.rows <= 0:
            yield f"it names {file.path} of bucket {file.partition} with {file.rows} rows"
    for added in (manifest.files, manifest.hidden):
        if len({(file.partition, file.closed) for file in added}) < len(added):
            yield "it names two files of one bucket"
    gone = any(file.closed for file in (*manifest.removed, *manifest.hidden))
    if gone or (manifest.changelog.keeps == "latest" and any(one.closed for one in manifest.files)):
        yield "it removes or hides rows of a history that have ended, or is no history"
    before = sum(file.rows for file in (*manifest.removed, *manifest.removed_hidden))
    after = sum(file.rows for file in (*manifest.files, *manifest.hidden))
    read = sum(ledger.loaded for ledger in manifest.ledgers)
    if after - before > read:
        yield f"it keeps {after - before} more changes than before, and has read {read}"


def _of_compaction(manifest: Manifest) -> Iterator[str]:
    """Check that added and removed files have the same rows in each partition and bucket."""
    if manifest.ledgers or manifest.skipped:
        yield "it has ledgers or offsets left out, which no compaction has"
    for what, more, fewer in (
        ("rows", manifest.files, manifest.removed),
        ("dead letters", manifest.dead_letters, manifest.removed_dead_letters),
    ):
        added, removed = _by_partition(more), _by_partition(fewer)
        for partition in sorted(added.keys() | removed.keys()):
            ours, theirs = added.get(partition, []), removed.get(partition, [])
            for event in sorted({file.event for file in (*ours, *theirs)}):
                if sums(_of_event(ours, event)) != sums(_of_event(theirs, event)):
                    where = f"partition {partition}{f' and {event}' if event else ''}"
                    yield f"the {what} it adds to {where} are not those that it removes"


def _of_replacement(manifest: Manifest) -> Iterator[str]:
    """Check that only files within the replaced ranges are removed."""
    removed = _by_partition((*manifest.removed, *manifest.removed_dead_letters))
    for ledger in manifest.ledgers:
        files = removed.pop(ledger.partition, [])
        if any(file.start < ledger.start or file.end > ledger.end for file in files):
            yield f"it removes files of partition {ledger.partition} outside the range it replaces"
    for partition in sorted(removed):
        yield f"it removes files of partition {partition}, and replaces none of it"


def _by_partition(files: Sequence[DataFile]) -> dict[int, list[DataFile]]:
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    return found


def _by_event(files: Sequence[DataFile]) -> list[list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.event, []).append(file)
    return list(found.values())


def _of_event(files: Sequence[DataFile], event: str) -> list[DataFile]:
    return [file for file in files if file.event == event]


def _touch_in_order(files: Sequence[DataFile], ledger: PartitionLedger) -> bool:
    """Return whether the files of one bucket lie within the ledger's range and do not overlap."""
    position = ledger.start
    for file in files:
        if not position <= file.start < file.end <= ledger.end:
            return False
        if not 0 < file.rows <= file.end - file.start:
            return False
        position = file.end
    return True


@dataclass(frozen=True, slots=True)
class TableStanding:
    """The totals of all commits up to `version`. Version 0 is the empty table."""

    version: int = 0
    digest: str | None = None  # The digest of the manifest of `version`.
    topic: str | None = None
    topic_id: str | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    total_rows: int = 0
    total_hash: str = hash_text(0)
    # `<load id>:<number of its files>` of each load, in order, separated by blanks.
    loads: str = ""
    writer_epoch: int = 0
    changelog: str = ""  # The kind of changelog table as text; empty for a table of rows.
    events: EventTimes | None = None

    def agrees_with(self, manifest: Manifest, digest: str) -> bool:
        """Return whether `manifest`, with this digest, has the version and totals of this state."""
        said = (manifest.version, digest, manifest.topic, manifest.positions)
        epoch = manifest.writer_epoch
        last = self.loads.rpartition(" ")[2]
        return (
            said == (self.version, self.digest, self.topic, self.positions)
            and (epoch, _changelog_text(manifest)) == (self.writer_epoch, self.changelog)
            and settled(manifest.events) == self.events
            and (manifest.total_rows, manifest.total_hash) == (self.total_rows, self.total_hash)
            and (self.loads.count(" ") + 1, last) == (self.version, _load_text(manifest))
        )


EMPTY = TableStanding()


def followed_by(
    before: TableStanding, manifest: Manifest, digest: str
) -> tuple[TableStanding, list[str]]:
    """Return the table's state after `manifest`, and problems of the manifest."""
    problems: list[str] = []
    positions = dict(before.positions)
    for ledger in manifest.ledgers:
        problems += _of_ledger(ledger, positions.get(ledger.partition), manifest)
        if manifest.kind in MOVES_POSITIONS:
            positions[ledger.partition] = ledger.end
    rows, hashed = sums(manifest.files)
    gone_rows, gone_hash = sums(manifest.removed)
    after = TableStanding(
        version=before.version + 1,
        digest=digest,
        topic=before.topic or manifest.topic,
        topic_id=before.topic_id or manifest.topic_id,
        positions=positions,
        total_rows=before.total_rows + rows - gone_rows,
        total_hash=hash_text(int(before.total_hash, 16) + hashed - gone_hash),
        loads=f"{before.loads} {_load_text(manifest)}".lstrip(),
        writer_epoch=before.writer_epoch + (manifest.kind == "epoch"),
        changelog=before.changelog if before.positions else _changelog_text(manifest),
        events=settled(manifest.events),
    )
    problems += of_files(manifest)
    problems += contradictions(before.events, manifest.events, manifest.kind, positions)
    said = [
        ("version", manifest.version, after.version),
        ("digest of the manifest before", manifest.previous, before.digest),
        ("topic", manifest.topic, after.topic),
        ("rows", manifest.rows, rows),
        ("hash", manifest.hash, hash_text(hashed)),
        ("total of rows", manifest.total_rows, after.total_rows),
        ("total hash", manifest.total_hash, after.total_hash),
        ("writer epoch", manifest.writer_epoch, after.writer_epoch),
        ("kind of table", _changelog_text(manifest), after.changelog),
    ]
    if before.topic_id and manifest.topic_id:
        said.append(("topic id", manifest.topic_id, before.topic_id))
    said += [
        (f"position of partition {partition}", manifest.positions.get(partition), end)
        for partition, end in sorted(positions.items())
    ]
    problems += [
        f"its {what} is {claimed}, and {derived} by the files and ledgers of the loads"
        for what, claimed, derived in said
        if claimed != derived
    ]
    problems += [
        f"it has a position of partition {partition}, of which nothing was loaded"
        for partition in sorted(manifest.positions.keys() - positions.keys())
    ]
    return after, problems


def _load_text(manifest: Manifest) -> str:
    return f"{manifest.load_id}:{len(manifest.files)}"


def _changelog_text(manifest: Manifest) -> str:
    found = manifest.changelog
    return f"{found.keeps} of each key in {found.buckets} buckets" if found else ""


def _of_ledger(ledger: PartitionLedger, position: int | None, manifest: Manifest) -> Iterator[str]:
    what = f"{manifest.kind} {manifest.version}"
    if not ledger.balances or not 0 <= ledger.start <= ledger.end:
        yield f"{what} left offsets unexplained: {ledger}"
    if manifest.kind == "replacement":
        if position is None or ledger.end > position:
            yield (
                f"{what} ends at offset {ledger.end} of partition {ledger.partition}, but the "
                f"loads before it end at {position}"
            )
    elif position is not None and ledger.start != position:
        yield (
            f"{what} starts at offset {ledger.start} of partition {ledger.partition}, "
            f"but the loads before it end at {position}"
        )
