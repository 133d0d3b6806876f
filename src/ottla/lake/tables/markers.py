"""Head markers record how many loads a table holds, so that a missing manifest is noticed.

    DIR/_ottla/heads/00000000000000000007.json    {format, sha256, version, manifest}

A marker is written after the manifest that it names, in a file of its own. The highest number
counts, so a load that paused before writing its marker cannot undo a later one. A new table has
number 0. The newest few are kept, so that a listing always finds one.

If a load crashes between manifest and marker, the next load writes the missing marker.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields

from ottla.lake.model.chain import TableStanding
from ottla.lake.model.manifest import SealBroken, seal, unseal
from ottla.lake.store.store import FileStore

_NAME = re.compile(r"(\d{20})\.json")
_HEADS_KEPT = 4


@dataclass(frozen=True, slots=True)
class TableHead:
    """Says that the table has had `version` loads; `manifest` is the last manifest's digest."""

    version: int
    manifest: str | None
    # Set if the marker cannot be read; the version is then taken from its name.
    problem: str | None = None


class Heads:
    """The head markers in `folder` of a store."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def newest(self) -> TableHead | None:
        """Return the highest marker; None if there is none."""
        versions = self._versions()
        found = self._read(versions[-1]) if versions else None
        return found if found or not versions else self.newest()

    def all(self) -> list[TableHead]:
        """Return the stored markers, lowest first."""
        versions = self._versions()
        found = [head for head in map(self._read, versions) if head is not None]
        # If a commit has removed older markers meanwhile, there is a newer one.
        return found if found or not versions else self.all()

    def _read(self, version: int) -> TableHead | None:
        path = self._path(version)
        try:
            fields, _ = unseal(self._store.read(path))
            if fields["version"] != version:
                raise SealBroken(f"can't be read: it is of version {fields['version']}")
            return TableHead(version, fields["manifest"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            name = path.rpartition("/")[2]
            remedy = f"remove it, once manifest {name} is there: the next load writes it"
            return TableHead(version, None, problem=f"the head {name} {error}; {remedy}")

    def require_one(self, has_content: Callable[[], bool]) -> None:
        """Write marker 0 for a new table. `has_content` returns whether the table has rows."""
        if not self._versions() and not has_content() and not self._versions():
            self.write(0, None)

    def write(self, version: int, manifest: str | None) -> None:
        """Write the marker of `version`, and remove the ones that are no longer needed."""
        content = seal({"version": version, "manifest": manifest})
        self._store.replace(self._path(version), content)
        for old in self._versions()[:-_HEADS_KEPT]:
            self._store.remove(self._path(old))

    def _versions(self) -> list[int]:
        names = map(_NAME.fullmatch, self._store.names(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"


_LOADS_BETWEEN = 10
_CHECKPOINTS_KEPT = 2


class TableCheckpoints:
    """The checkpoints in `folder` of a store."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def newest_first(self) -> Iterator[TableStanding]:
        """Yield the checkpoints that can be read."""
        for version in reversed(self._versions()):
            found = self._read(version)
            if found is not None:
                yield found

    def problems(self, standings: Mapping[int, TableStanding]) -> list[str]:
        """Return problems of checkpoints: unreadable ones, and contradictions to `standings`."""
        found = []
        for version in self._versions():
            said = self._read(version)
            what = "can't be read" if said is None else "says otherwise than the manifests"
            if said is None or (version in standings and said != standings[version]):
                found.append(f"the checkpoint {self._path(version)} {what}: remove it")
        return found

    def _read(self, version: int) -> TableStanding | None:
        try:
            found, _ = unseal(self._store.read(self._path(version)))
            found["positions"] = {int(p): int(o) for p, o in found["positions"].items()}
            # Checkpoints from before there were event times have none.
            if {*found, "events"} == {field.name for field in fields(TableStanding)}:
                return TableStanding(**found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def is_due(self, version: int) -> bool:
        """Return whether a checkpoint is due after the load of this version."""
        newest = max([0, *self._versions()])
        return version % _LOADS_BETWEEN == 0 or version - newest >= _LOADS_BETWEEN

    def write(self, standing: TableStanding) -> None:
        """Write a checkpoint, and remove the ones that are no longer needed."""
        content = {**asdict(standing), "positions": dict(standing.positions)}
        self._store.replace(self._path(standing.version), seal(content))
        for old in self._versions()[:-_CHECKPOINTS_KEPT]:
            self._store.remove(self._path(old))

    def _versions(self) -> list[int]:
        names = map(_NAME.fullmatch, self._store.names(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"


class RunningLoads:
    """The markers in `folder` of a store; the folder need not exist."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    @contextmanager
    def mark(self, load_id: str) -> Iterator[None]:
        """Mark the load as running until the context is left or the process ends."""
        with self._store.hold(self._folder + load_id):
            yield

    def may_run(self, load_id: str) -> bool:
        """Return False only if the load or its process has ended (see `FileStore.is_held`)."""
        return self._store.is_held(self._folder + load_id)

    def sweep(self) -> None:
        """Remove the markers of loads whose process has ended."""
        for name in self._store.names(self._folder):
            if not name.startswith(".") and not self.may_run(name):
                self._store.remove(self._folder + name)
