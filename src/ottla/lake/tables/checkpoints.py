"""Checkpoints save a table's state after a load, so that the next load reads few manifests.

    DIR/_ottla/checkpoints/00000000000000000020.json

They are derived from the manifests and may be deleted at any time. If a checkpoint is missing,
damaged, or contradicts the manifest of its version, a load only has to read more manifests.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields

from ottla.lake.model.chain import TableStanding
from ottla.lake.model.sealed import seal, unseal
from ottla.lake.store.store import FileStore

_NAME = re.compile(r"(\d{20})\.json")
_LOADS_BETWEEN = 10
_KEPT = 2


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
        for old in self._versions()[:-_KEPT]:
            self._store.remove(self._path(old))

    def _versions(self) -> list[int]:
        names = map(_NAME.fullmatch, self._store.names(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"
