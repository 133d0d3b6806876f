"""Checkpoints save the files of a changelog table's state, so that few manifests are read.

    DIR/_ottla/states/00000000000000000020.json

They are derived from the manifests and may be deleted at any time. If a checkpoint is missing,
damaged, or contradicts the chain of manifests, a run only has to read more manifests.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from ottla.lake.model.chain import EMPTY, TableStanding
from ottla.lake.model.manifest import DataFile, seal, unseal
from ottla.lake.store.store import FileStore

FOLDER = "_ottla/states/"
_NAME = re.compile(r"(\d{20})\.json")
_KEPT = 2


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files of the state after the commit of `standing`, by path, without closed files."""

    standing: TableStanding = EMPTY
    visible: Mapping[str, DataFile] = field(default_factory=dict)
    hidden: Mapping[str, DataFile] = field(default_factory=dict)
    # The number of each file's typed schema; 0: raw columns only.
    schemas: Mapping[str, int] = field(default_factory=dict)


def newest_first(store: FileStore) -> Iterator[StateFiles]:
    """Yield the checkpoints that can be read."""
    for version in reversed(_versions(store)):
        try:
            found, _ = unseal(store.read(_path(version)))
            standing = found["standing"]
            standing["positions"] = {int(p): int(at) for p, at in standing["positions"].items()}
            visible, hidden = (
                {one["path"]: DataFile(**one) for one in found[name]}
                for name in ("visible", "hidden")
            )
            schemas = {str(path): int(number) for path, number in found["schemas"].items()}
            yield StateFiles(TableStanding(**standing), visible, hidden, schemas)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue


def write(store: FileStore, state: StateFiles) -> None:
    """Write a checkpoint, and remove the ones that are no longer needed."""
    standing = {**asdict(state.standing), "positions": dict(state.standing.positions)}
    content = {
        "standing": standing,
        "visible": [asdict(file) for file in state.visible.values()],
        "hidden": [asdict(file) for file in state.hidden.values()],
        "schemas": dict(state.schemas),
    }
    store.replace(_path(state.standing.version), seal(content))
    for old in _versions(store)[:-_KEPT]:
        store.remove(_path(old))


def _versions(store: FileStore) -> list[int]:
    names = map(_NAME.fullmatch, store.names(FOLDER))
    return sorted(int(match[1]) for match in names if match)


def _path(version: int) -> str:
    return f"{FOLDER}{version:020d}.json"
