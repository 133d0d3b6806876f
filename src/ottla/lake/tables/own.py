"""Ottla's own table format: Parquet files that are live once a numbered manifest names them.

A load becomes visible by one atomic step: its manifest takes the next number, which fails if the
number is taken (`FileStore.put_if_absent`). Before that step its files are stored but have no
effect; after it, data and offsets are visible together.

    DIR/_ottla/manifests/00000000000000000001.json
    DIR/_ottla/heads/00000000000000000001.json          how many loads there are
    DIR/_ottla/checkpoints/00000000000000000020.json    sums over manifests, to read fewer
    DIR/data/v0000000001-<load id>-p<partition>-<start>-<attempt>.parquet

Each step is durable before the next: the files, the manifest, the head.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ottla.base.errors import OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding, followed_by
from ottla.lake.model.manifest import DataFile, Manifest, from_bytes, to_bytes, unseal
from ottla.lake.store.store import FileStore
from ottla.lake.tables import data_files
from ottla.lake.tables.formats import HEADS, OWN_FOLDER, require_own, require_table
from ottla.lake.tables.markers import Heads, RunningLoads, TableCheckpoints, TableHead
from ottla.lake.tables.sound_chain import SoundChain
from ottla.lake.tables.table import Agreement, ManifestLink

_MANIFESTS = f"{OWN_FOLDER}manifests/"
_MANIFEST_NAME = re.compile(r"(\d{20})\.json")
_MANIFEST_NAMES = re.compile(r"(?:\d{20}\.json)*")


def _no_step(_name: str) -> None:
    """The default of `on_step`."""


class OwnTable:
    """A table in ottla's own format. `on_step` gets the name of each completed step."""

    format = "parquet"
    file_stem = staticmethod(data_files.file_stem)

    def __init__(self, store: FileStore, on_step: Callable[[str], None] = _no_step) -> None:
        self.store = store
        self._heads = Heads(store, f"{OWN_FOLDER}heads/")
        self._checkpoints = TableCheckpoints(store, f"{OWN_FOLDER}checkpoints/")
        self.running = RunningLoads(store, f"{OWN_FOLDER}running/")
        self._on_step = on_step
        self._writes = False
        self._chain = SoundChain(
            store.url, self._heads, self._checkpoints, self.links, self._find, "the manifest"
        )

    @classmethod
    def create_or_open(
        cls, store: FileStore, on_step: Callable[[str], None] = _no_step
    ) -> "OwnTable":
        """Open the table in `store` for writing, and create it if there is none.

        Raises OttlaError if two writers could get the same name in the store, or if the store holds
        files that are not a table of ottla.
        """
        table = cls(store, on_step)
        require_own(store)
        # Create the folder that marks the table as ours first, in case of a crash half-way.
        store.prepare((_MANIFESTS, data_files.FOLDER))
        table._heads.require_one(table._has_content)
        table._writes = True
        return table

    @classmethod
    def open(cls, store: FileStore, target: str) -> "OwnTable":
        """Open an existing table for reading. Raises OttlaError where there is none."""
        require_table(store, target)
        return cls(store)

    def latest(self) -> tuple[Manifest | None, str | None]:
        return self._chain.latest(repairs_head=self._writes)

    def history(self) -> Iterator[Manifest]:
        return self._chain.history()

    def live_files(self) -> Sequence[DataFile]:
        return self._chain.live_files()

    def live_paths(self) -> Sequence[str]:
        return [file.path for file in self.live_files()]

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:  # noqa: ARG002  # Manifests stay.
        return frozenset(self.live_paths())

    def must_rewrite(self, columns: Any) -> bool:  # noqa: ARG002  # Each file has its own types.
        return False

    def audit(self, chain: Sequence[tuple[Manifest, str | None]]) -> Agreement:  # noqa: ARG002  # The chain is the log.
        return Agreement()

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        # Read before the manifests: a load that ends meanwhile has a manifest before its head
        # marker.
        heads = self._heads.all()
        if not heads and self._has_content():
            # The first head marker is written before any of these.
            problem = f"no file in {self.store.address(HEADS)} says how many loads it "
            heads = self._heads.all() or [TableHead(0, None, problem=f"{problem}holds")]
        versions, first = self._versions(since.version)
        newest = max([0, *versions[-1:], *(head.version for head in heads)])
        if len(versions) < newest - first + 1:
            missing = set(range(first, newest + 1)).difference(versions)
            # A listing may miss files that are created while it runs.
            for version in (one for one in sorted(missing) if not self._is_there(one)):
                problem = f"the manifest {_name(version)} is missing"
                yield ManifestLink(_name(version), None, since, [problem])
        known = {head.version: head.manifest for head in heads if head.problem is None}
        yield from self._present_links(since, newest, known)
        for head in heads:
            if head.problem is not None:
                yield ManifestLink("head", None, since, [head.problem])

    def _present_links(
        self, since: TableStanding, newest: int, known: Mapping[int, str | None]
    ) -> Iterator[ManifestLink]:
        standing = since
        if known.get(since.version, since.digest) != since.digest:
            name = _name(since.version)
            problem = f"the manifest {name}: it is not the one that the head names"
            yield ManifestLink(name, None, since, [problem])
        for version in range(since.version + 1, newest + 1):
            name = _name(version)
            try:
                # A refusal or missing answer of the storage is not damage, so it is raised.
                content = self.store.read(_path(version))
            except FileNotFoundError:
                return
            try:
                manifest, digest = from_bytes(content, name)
            except OttlaError as error:
                yield ManifestLink(name, None, standing, [error.message])
                return
            standing, problems = followed_by(standing, manifest, digest)
            problems = [f"the manifest {name}: {problem}" for problem in problems]
            if known.get(version, digest) != digest:
                problems.append(f"the manifest {name}: it is not the one that the head names")
            yield ManifestLink(name, manifest, standing, problems)

    def _find(self, standing: TableStanding) -> tuple[Manifest, str] | None:
        try:
            return self._read(standing.version)
        except (OSError, OttlaError):
            return None

    def commit(self, manifest: Manifest) -> None:
        content = to_bytes(manifest)
        # If the process crashes from here on, the manifest may have been stored.
        self._on_step("manifest offered")
        if not self.store.put_if_absent(_path(manifest.version), content):
            raise self._chain.lost(manifest)
        self._on_step("manifest written")
        self._chain.committed(manifest.version, unseal(content)[1], self._on_step)

    def _loads_now(self) -> list[str]:
        return self._chain.newest()[1].loads.split()

    def remove_orphans(self) -> list[str]:
        return data_files.remove_orphans(
            self.store,
            self.running,
            self._loads_now,
            self._paths_named,
        )

    def _paths_named(self, version: int) -> set[str]:
        manifest = self._read(version)[0]
        return {file.path for file in (*manifest.files, *manifest.dead_letters)}

    def _has_content(self) -> bool:
        """Return whether the store has anything that is written after the first head marker."""
        return bool(self._versions(0)[0] or data_files.has_data_files(self.store))

    def _versions(self, since: int) -> tuple[Sequence[int], int]:
        """Return the numbers of the stored manifests in order, and the first number listed.

        Manifests up to `since` are listed too if that costs no more.
        """
        if not self.store.lists_all_at_once:
            names = self.store.names(_MANIFESTS, after=_name(since))
            return _numbers(names), since + 1
        names = self.store.names(_MANIFESTS)
        # Hot: a table has many manifests, usually all of 1 to the last. This avoids a look at each.
        is_whole = (
            _MANIFEST_NAMES.fullmatch("".join(names))
            and names
            and (max(names), min(names)) == (_name(len(names)), _name(1))
        )
        return (range(1, len(names) + 1) if is_whole else _numbers(names)), 1

    def _is_there(self, version: int) -> bool:
        try:
            self.store.size(_path(version))
        except FileNotFoundError:
            return False
        return True

    def _read(self, version: int) -> tuple[Manifest, str]:
        return from_bytes(self.store.read(_path(version)), _name(version))


def _numbers(names: Sequence[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(_MANIFEST_NAME.fullmatch, names) if match)


def _name(version: int) -> str:
    return f"{version:020d}.json"


def _path(version: int) -> str:
    return f"{_MANIFESTS}{version:020d}.json"
