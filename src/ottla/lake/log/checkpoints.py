"""Checkpoints of a table: where it stood after a load, so that the next one reads few manifests.

    DIR/_ottla/checkpoints/00000000000000000020.json

They follow from the manifests and may be deleted at any time: one that is missing, damaged, or
that the manifest of its version contradicts, costs the reading of more manifests and no more.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from ottla.lake.log.chain import TableStanding
from ottla.lake.log.sealed import seal, unseal
from ottla.lake.log.synced import replace_synced

_NAME = re.compile(r"(\d{20})\.json")
_LOADS_BETWEEN = 10
_KEPT = 2


class TableCheckpoints:
    """The checkpoints in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest_first(self) -> Iterator[TableStanding]:
        """Yield those that can be read."""
        for version in reversed(self._versions()):
            try:
                found, _ = unseal(self._path(version).read_bytes())
                found["positions"] = {int(p): int(o) for p, o in found["positions"].items()}
                if found.keys() == {field.name for field in fields(TableStanding)}:
                    yield TableStanding(**found)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue

    def is_due(self, version: int) -> bool:
        """Whether one is to be written after the load of this version."""
        newest = max([0, *self._versions()])
        return version % _LOADS_BETWEEN == 0 or version - newest >= _LOADS_BETWEEN

    def write(self, standing: TableStanding) -> None:
        """Write one, and remove those that are no longer needed."""
        self._folder.mkdir(exist_ok=True)
        content = {**asdict(standing), "positions": dict(standing.positions)}
        replace_synced(self._path(standing.version), seal(content))
        for old in self._versions()[:-_KEPT]:
            self._path(old).unlink(missing_ok=True)

    def _versions(self) -> list[int]:
        try:
            names = map(_NAME.fullmatch, os.listdir(self._folder))
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for match in names if match)

    def _path(self, version: int) -> Path:
        return self._folder / f"{version:020d}.json"
