"""Records of the files of a table format's log: the size and the SHA-256 of each.

    DIR/_ottla/log/00000000000000000003.json
        {format, sha256, version, previous, through, files: {path: [size, sha256]}, catalog}

A commit writes its record once the log has the commit, before the head, which has the record's
digest; each record has the digest of the one before. It covers what came into the log since that
one: entries or metadata of this commit, and of other programs meanwhile. Where a crash comes
between, the next load writes the record. A table without any is of an earlier version of ottla, and
its first record covers all that the log has by then.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ottla.lake.log.sealed import SealBroken, seal, unseal
from ottla.lake.stores.store import FileStore

_NAME = re.compile(r"(\d{20})\.json")
_FILES_AT_ONCE = 8
_LOOKED_AT = 20

# A file's size in bytes and its SHA-256.
Bytes = tuple[int, str]


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files that came into a log, and a mark of how far it is looked through with them."""

    paths: Sequence[str]
    through: Mapping[str, Any]
    # What a catalog of its own holds, where the log has one.
    catalog: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record, and its digest."""

    version: int
    digest: str
    previous: str | None
    through: Mapping[str, Any]
    files: Mapping[str, Bytes]
    catalog: Mapping[str, Any] | None


@dataclass(slots=True)
class RecordsRead:
    """What all records say. The newest word on a file counts."""

    newest: LogRecord | None = None
    # With the version of the record.
    files: dict[str, tuple[Bytes, int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class LogRecords:
    """The records in `folder` of a store."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def write(self, version: int, look: Callable[[Mapping[str, Any] | None], NewFiles]) -> str:
        """Write the record of `version`, unless it is there; return its digest.

        `look` returns what came into the log since a mark. Raises OSError and OttlaError.
        """
        before = None
        # Mostly there is one of a version not long before: others need not be listed.
        near = self._versions(max(0, version - _LOOKED_AT))
        for known in reversed(near or self._versions()):
            if known > version:
                continue
            try:
                before = self._read(known)
            except (OSError, ValueError, KeyError, TypeError):
                break  # Found by `read`; this record covers all that the log has.
            if known == version:
                return before.digest
            break
        new = look(before.through if before else None)
        content = seal(
            {
                "version": version,
                "previous": before.digest if before else None,
                "through": dict(new.through),
                "files": dict(self._bytes_of(new.paths)),
                "catalog": new.catalog,
            }
        )
        path = self._path(version)
        if not self._store.put_if_absent(path, content):
            content = self._store.read(path)  # Another writer's, who repaired the head meanwhile.
        return unseal(content)[1]

    def read(self) -> RecordsRead:
        """Read all records, and say what is wrong with them."""
        found = RecordsRead()
        digests: set[str] = set()
        for number in self._versions():
            try:
                record = self._read(number)
            except (OSError, ValueError, KeyError, TypeError) as error:
                problem = f"{self._path(number)} {error}"
                found.problems.append(f"{problem}: remove it, the next load records all files anew")
                continue
            if record.previous is not None and record.previous not in digests:
                found.problems.append(
                    f"{self._path(number)} follows another record than those that are there"
                )
            elif record.previous is None and digests:
                # All that the log had by then.
                found.files.clear()
            digests.add(record.digest)
            found.newest = record
            found.files |= {path: (said, number) for path, said in record.files.items()}
        return found

    def _bytes_of(self, paths: Sequence[str]) -> list[tuple[str, Bytes]]:
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            found = pool.map(lambda path: bytes_of(self._store, path), paths)
            # What another program has removed meanwhile is not needed any more.
            return [(path, one) for path, one in zip(paths, found, strict=True) if one is not None]

    def _read(self, version: int) -> LogRecord:
        fields, digest = unseal(self._store.read(self._path(version)))
        if fields["version"] != version:
            raise SealBroken(f"can't be read: it is of version {fields['version']}")
        files = {path: (int(size), str(sha)) for path, (size, sha) in fields["files"].items()}
        return LogRecord(
            version, digest, fields["previous"], fields["through"], files, fields["catalog"]
        )

    def _versions(self, since: int = 0) -> list[int]:
        after = f"{since:020d}" if since else ""
        names = map(_NAME.fullmatch, self._store.names(self._folder, after))
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"


def bytes_of(store: FileStore, path: str) -> Bytes | None:
    """Size and SHA-256 of a file; None where it is gone."""
    try:
        content = store.read(path)
    except FileNotFoundError:
        return None
    return len(content), hashlib.sha256(content).hexdigest()
