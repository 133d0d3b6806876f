"""Head markers of a table: how many loads it holds, known without its manifests.

    DIR/_ottla/heads/00000000000000000007.json    {format, sha256, version, manifest}

A marker is written after the manifest that it names, under a name of its own, so that a load that
stood still between the two takes nothing back: the highest one counts. A new table has number 0.
Some older ones stay, so that a listing meets one while others are written and removed.

A crash between manifest and marker leaves the marker one behind. The next load writes it.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ottla.lake.log.sealed import SealBroken, seal, unseal
from ottla.lake.log.synced import replace_synced

_NAME = re.compile(r"(\d{20})\.json")
_KEPT = 4


@dataclass(frozen=True, slots=True)
class TableHead:
    """The table has had `version` loads; `manifest` is the digest of the last one's manifest."""

    version: int
    manifest: str | None
    problem: str | None = None  # Set where the marker can't be read; its name says the version.


class Heads:
    """The head markers in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> TableHead | None:
        """Return the highest marker; None where there is none."""
        versions = self._versions()
        return self._read(versions[-1]) if versions else None

    def all(self) -> list[TableHead]:
        """Return the markers that are there, lowest first."""
        return [self._read(version) for version in self._versions()]

    def _read(self, version: int) -> TableHead:
        path = self._path(version)
        try:
            fields, _ = unseal(path.read_bytes())
            if fields["version"] != version:
                raise SealBroken(f"can't be read: it is of version {fields['version']}")
            return TableHead(version, fields["manifest"])
        except (ValueError, KeyError) as error:
            remedy = f"remove it, once manifest {path.name} is there: the next load writes it"
            return TableHead(version, None, f"the head {path.name} {error}; {remedy}")

    def require_one(self, has_content: Callable[[], bool]) -> None:
        """Write number 0 for a new table. `has_content` says whether this is one with rows."""
        if not self._versions() and not has_content() and not self._versions():
            self.write(0, None)

    def write(self, version: int, manifest: str | None) -> None:
        """Write the marker of `version`, and remove those that are no longer needed."""
        self._folder.mkdir(exist_ok=True)
        replace_synced(self._path(version), seal({"version": version, "manifest": manifest}))
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
