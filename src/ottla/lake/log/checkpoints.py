"""Checkpoints of a table: where it stood after a load, so that the next one reads few manifests.

    DIR/_ottla/checkpoints/00000000000000000020.json

They follow from the manifests and may be deleted at any time: one that is missing, damaged, or
that the manifest of its version contradicts, costs the reading of more manifests and no more.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields

from ottla.lake.log.chain import TableStanding
from ottla.lake.log.sealed import seal, unseal
from ottla.lake.stores.store import FileStore

_NAME = re.compile(r"(\d{20})\.json")
_LOADS_BETWEEN = 10
_KEPT = 2


class TableCheckpoints:
    """The checkpoints in `folder` of a store."""

    def __init__(self, store: FileStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    def newest_first(self) -> Iterator[TableStanding]:
        """Yield those that can be read."""
        for version in reversed(self._versions()):
            found = self._read(version)
            if found is not None:
                yield found

    def problems(self, standings: Mapping[int, TableStanding]) -> list[str]:
        """Say which can't be read, or say otherwise than the manifests of `standings`."""
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
            # One of before there were event times has none.
            if {*found, "events"} == {field.name for field in fields(TableStanding)}:
                return TableStanding(**found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def is_due(self, version: int) -> bool:
        """Whether one is to be written after the load of this version."""
        newest = max([0, *self._versions()])
        return version % _LOADS_BETWEEN == 0 or version - newest >= _LOADS_BETWEEN

    def write(self, standing: TableStanding) -> None:
        """Write one, and remove those that are no longer needed."""
        content = {**asdict(standing), "positions": dict(standing.positions)}
        self._store.replace(self._path(standing.version), seal(content))
        for old in self._versions()[:-_KEPT]:
            self._store.remove(self._path(old))

    def _versions(self) -> list[int]:
        names = map(_NAME.fullmatch, self._store.names(self._folder))
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> str:
        return f"{self._folder}{version:020d}.json"
