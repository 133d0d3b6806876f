"""Compares the files of a table format's log with what the records of loads say of their bytes."""

from collections.abc import Sequence
from contextlib import suppress

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted
from ottla.lake.log.heads import TableHead
from ottla.lake.log.records import LogRecords, RecordsRead, bytes_of
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.log import TableLog
from ottla.lake.tables.table import LogFindings

# JSON is read safely whatever it holds; libraries may crash on other bytes that are damaged.
_SAFE = ".json"
# An expiry may take files of the log while it is read.
_TRIES = 3


def check_log_files(
    store: FileStore, log: TableLog, records: LogRecords, heads: Sequence[TableHead]
) -> LogFindings:
    """Compare each file on record with its bytes; those that nothing needs any more may be gone."""
    said = records.read()
    found = LogFindings(list(said.problems))
    found.problems += _of_heads(heads, said)
    if said.newest is None:
        if not said.problems and not found.problems and any(head.version for head in heads):
            found.remarks.append(
                f"no load has written down the bytes of {log.kind}'s log, as earlier versions of "
                "ottla did not: changes that leave its meaning as it is are not found"
            )
        return found
    found.recorded = said.newest.version
    missing = []
    for path, (written, version) in sorted(said.files.items()):
        now = bytes_of(store, path)
        if now is None:
            missing.append(path)
        elif now != written and not _written_again(store, log, path, said):
            found.is_risky |= not path.endswith(_SAFE)
            found.problems.append(
                f"{path} is not as load {version} left it: {now[0]} bytes with SHA-256 {now[1]} "
                f"instead of {written[0]} bytes with {written[1]}"
            )
    needed = _needed(log, missing)
    found.problems += [f"{path} is missing, which {log.kind}'s log needs" for path in needed]
    if len(missing) > len(needed):
        found.remarks.append(
            f"{counted(len(missing) - len(needed), 'file')} of {log.kind}'s log on record can't be "
            "compared: gone by now, and nothing needs them (expired snapshots and entries)"
        )
    if said.newest.catalog is not None:
        problems, remarks = log.catalog_findings(said.newest.catalog, said.newest.through)
        found.problems += problems
        found.remarks += remarks
    return found


def _of_heads(heads: Sequence[TableHead], said: RecordsRead) -> list[str]:
    """The newest head that knows of a record has the digest of the newest one, or of an older."""
    known = [head for head in heads if head.problem is None and head.record is not None]
    if not known:
        return []
    head, newest = known[-1], said.newest
    if newest is None or newest.version < head.version:
        return [
            f"no record of the log's files is in _ottla/log/ for load {head.version}, which the "
            "head names"
        ]
    if newest.version == head.version and newest.digest != head.record:
        return [f"the head names another record of the log's files for load {head.version}"]
    return []


def _written_again(store: FileStore, log: TableLog, path: str, said: RecordsRead) -> bool:
    try:
        return log.may_write_again(path, store.read(path), said.files)
    except (OSError, OttlaError):
        return False


def _needed(log: TableLog, missing: Sequence[str]) -> Sequence[str]:
    """Of the files that are gone, those that the log still needs: all where it can't be read."""
    if not missing:
        return ()
    for _ in range(_TRIES):
        with suppress(OttlaError):
            return log.needed(missing)
    return missing
