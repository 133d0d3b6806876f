"""Small files next to a table's manifests: head markers, checkpoints, markers of running loads.

    DIR/_ottla/heads/00000000000000000007.json          {format, sha256, version, manifest}
    DIR/_ottla/checkpoints/00000000000000000020.json    the table's state after that load
    DIR/_ottla/running/<load id>

A head marker records how many loads a table holds, so that a missing manifest is noticed. Each load
writes a new marker after its manifest. The marker with the highest number is valid, so a slow load
that writes its marker late cannot undo a later load. A new table has number 0. If a load crashes
between manifest and marker, the next load writes the missing marker.

A checkpoint saves the table's state, so that the next load reads only the manifests after it.
Checkpoints are derived from the manifests and may be deleted at any time. If one is missing,
damaged, or contradicts the manifest of its version, a load only has to read more manifests.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ottla.lake.model.chain import TableStanding
from ottla.lake.model.manifest import SealBroken, from_json, seal, unseal
from ottla.lake.store.store import FileStore
from ottla.lake.tables.formats import CHECKPOINTS, HEADS, RUNNING

_NAME = re.compile(r"(\d{20})\.json")
_LOADS_BETWEEN_CHECKPOINTS = 10


class _Numbered:
    """Sealed files in a folder, each named by a version. Only the newest few are kept."""

    def __init__(self, store: FileStore, folder: str, kept: int) -> None:
        self._store = store
        self._folder = folder
        self._kept = kept

    def versions(self) -> list[int]:
        names = map(_NAME.fullmatch, self._store.names(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"

    def read(self, version: int) -> dict[str, Any]:
        """Return the fields of a file. Raises FileNotFoundError and SealBroken."""
        return unseal(self._store.read(self.path(version)))[0]

    def write(self, version: int, content: Mapping[str, Any]) -> None:
        """Write a file, and remove all but the newest few files."""
        self._store.replace(self.path(version), seal(content))
        for old in self.versions()[: -self._kept]:
            self._store.remove(self.path(old))


@dataclass(frozen=True, slots=True)
class TableHead:
    """Says that the table has had `version` loads; `manifest` is the last manifest's digest."""

    version: int
    manifest: str | None
    # Set if the marker cannot be read. The version is then that of the file's name.
    problem: str | None = None


class Heads:
    """The head markers of a table."""

    def __init__(self, store: FileStore) -> None:
        # Several are kept, so that a listing always finds one.
        self._files = _Numbered(store, HEADS, kept=4)

    def newest(self) -> TableHead | None:
        """Return the highest marker; None if there is none."""
        versions = self._files.versions()
        found = self._read(versions[-1]) if versions else None
        return found if found or not versions else self.newest()

    def all(self) -> list[TableHead]:
        """Return the stored markers, lowest first."""
        versions = self._files.versions()
        found = [head for head in map(self._read, versions) if head is not None]
        # If a commit has removed these markers meanwhile, there is a newer marker.
        return found if found or not versions else self.all()

    def _read(self, version: int) -> TableHead | None:
        try:
            found = self._files.read(version)
            if found["version"] != version:
                raise SealBroken(f"can't be read: it is of version {found['version']}")
            return TableHead(version, found["manifest"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            name = self._files.path(version).rpartition("/")[2]
            remedy = f"remove it, once manifest {name} is there: the next load writes it"
            return TableHead(version, None, problem=f"the head {name} {error}; {remedy}")

    def require_one(self, has_content: Callable[[], bool]) -> None:
        """Write marker 0 for a new table. `has_content` returns whether the table has rows."""
        if not self._files.versions() and not has_content() and not self._files.versions():
            self.write(0, None)

    def write(self, version: int, manifest: str | None) -> None:
        """Write the marker of `version`."""
        self._files.write(version, {"version": version, "manifest": manifest})


class TableCheckpoints:
    """The checkpoints of a table."""

    def __init__(self, store: FileStore) -> None:
        self._files = _Numbered(store, CHECKPOINTS, kept=2)

    def newest_first(self) -> Iterator[TableStanding]:
        """Yield the checkpoints that can be read, newest first."""
        return filter(None, map(self._read, reversed(self._files.versions())))

    def problems(self, standings: Mapping[int, TableStanding]) -> list[str]:
        """Return the checkpoints that cannot be read or that contradict `standings`."""
        found = []
        for version in self._files.versions():
            said = self._read(version)
            what = "can't be read" if said is None else "says otherwise than the manifests"
            if said is None or (version in standings and said != standings[version]):
                found.append(f"the checkpoint {self._files.path(version)} {what}: remove it")
        return found

    def _read(self, version: int) -> TableStanding | None:
        try:
            return from_json(TableStanding, self._files.read(version))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def is_due(self, version: int) -> bool:
        """Return whether a checkpoint should be written after the load of this version."""
        newest = max([0, *self._files.versions()])
        is_round = version % _LOADS_BETWEEN_CHECKPOINTS == 0
        return is_round or version - newest >= _LOADS_BETWEEN_CHECKPOINTS

    def write(self, standing: TableStanding) -> None:
        """Write a checkpoint."""
        self._files.write(standing.version, asdict(standing))


class RunningLoads:
    """Markers of the loads that are running, one file for each load."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    @contextmanager
    def mark(self, load_id: str) -> Iterator[None]:
        """Mark the load as running until the context is left or the process ends."""
        with self._store.hold(RUNNING + load_id):
            yield

    def may_run(self, load_id: str) -> bool:
        """Return False only if the load or its process has ended (see `FileStore.is_held`)."""
        return self._store.is_held(RUNNING + load_id)

    def sweep(self) -> None:
        """Remove the markers of loads whose process has ended."""
        for name in self._store.names(RUNNING):
            if not name.startswith(".") and not self.may_run(name):
                self._store.remove(RUNNING + name)
