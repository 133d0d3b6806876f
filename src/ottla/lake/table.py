"""A lake table in a folder: Parquet files that count only once a manifest names them.

A load becomes visible by one atomic step: a manifest is linked under the next free number,
which fails where the number is taken (put-if-absent). Before that step its files are in the
folder and mean nothing; after it data and offsets are there together.

    DIR/_ottla/manifests/00000000000000000001.json
    DIR/_ottla/heads/00000000000000000001.json          how many loads there are
    DIR/_ottla/checkpoints/00000000000000000020.json    sums over manifests, to read fewer
    DIR/data/v0000000001-<load id>-p<partition>-<start>-<attempt>.parquet

Every step that must survive a power cut is fsynced before the next: each file, the data
folder, the manifest, the manifests' folder, the head.
"""

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import sync_folder
from ottla.lake.folder.running import RunningLoads
from ottla.lake.folder.targets import folder_of
from ottla.lake.log.chain import EMPTY, TableStanding, followed_by
from ottla.lake.log.checkpoints import TableCheckpoints
from ottla.lake.log.heads import Heads, TableHead
from ottla.lake.log.sealed import unseal
from ottla.lake.log.synced import write_synced
from ottla.lake.manifest import Manifest, from_bytes, to_bytes

_MANIFEST_NAME = re.compile(r"(\d{20})\.json")
_MANIFEST_NAMES = re.compile(r"(?:\d{20}\.json)*")
# What a new file system or a desktop puts into an empty folder.
_NO_FILES_OF_OTHERS = frozenset({"lost+found", ".DS_Store", "Thumbs.db"})
# Whose table it is, by the name that shows it.
_OTHER_TABLES = {
    "_delta_log": "a Delta table",
    "metadata": "an Iceberg table",
    ".hoodie": "a Hudi table",
}
_STEM = len("v0000000001-") + 32  # Of a data file's name: version and load id.
_DATA_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-.*\.parquet(\.tmp)?")


@dataclass(frozen=True, slots=True)
class ManifestLink:
    """A manifest of the chain: None where it can't be had. `after` is where the table stands."""

    name: str
    manifest: Manifest | None
    after: TableStanding
    problems: Sequence[str]


class LoadLost(OttlaError):
    """Another load committed this version first; this one has changed nothing."""


def _no_step(_name: str) -> None:
    """The default of `on_step`."""


class Table:
    """The table in one folder. `on_step` is called with the name of each step once it is done."""

    def __init__(self, folder: Path, on_step: Callable[[str], None] = _no_step) -> None:
        self.folder = folder
        self.data_folder = folder / "data"
        self._manifests = folder / "_ottla" / "manifests"
        self._heads = Heads(folder / "_ottla" / "heads")
        self._checkpoints = TableCheckpoints(folder / "_ottla" / "checkpoints")
        self.running = RunningLoads(folder / "_ottla" / "running")
        self._on_step = on_step
        self._writes = False

    @classmethod
    def create_or_open(cls, target: str, on_step: Callable[[str], None] = _no_step) -> "Table":
        """Open the table in `target`, a folder on a filesystem with put-if-absent.

        Raises OttlaError for a URL of another filesystem, where hard links are not exclusive, and
        where the folder holds files that are not a table of ottla.
        """
        table = cls(folder_of(target), on_step)
        table._require_own()
        # What shows that the folder is ours comes first, should a crash leave only a part.
        table._manifests.mkdir(parents=True, exist_ok=True)
        table.data_folder.mkdir(parents=True, exist_ok=True)
        table._require_put_if_absent()
        table._heads.require_one(table._has_content)
        table._writes = True
        for folder in (table.folder.parent, table.folder, table.folder / "_ottla"):
            sync_folder(folder)
        return table

    @classmethod
    def open(cls, target: str) -> "Table":
        """Open an existing table for reading. Raises OttlaError where there is none."""
        table = cls(folder_of(target))
        if not table._manifests.is_dir():
            raise OttlaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                f"{target} holds no table of ottla: `ottla lake load TOPIC --to DIR` makes one",
            )
        return table

    def latest(self) -> tuple[Manifest | None, str | None]:
        """Return the newest manifest and its digest, or (None, None) for an empty table.

        Its positions are those that the ledgers of all loads give. Raises OttlaError where a
        manifest is missing, altered, or contradicts the others: nothing may be built on that.
        Of a table that was opened to write, the head is repaired after a crash.
        """
        newest, standing = self._newest()
        if self._writes:
            head = self._heads.newest()
            if head is None or head.version < standing.version:
                self._heads.write(standing.version, standing.digest)
        return newest, standing.digest

    def history(self) -> Iterator[Manifest]:
        """Yield all manifests, oldest first. Raises OttlaError as `latest` does."""
        return map(self._sound, self.links())

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        """Yield each manifest behind `since` with what is wrong with it, oldest first.

        Ends at one that is missing or unreadable: what follows from it is not known. Each missing
        one is yielded, without a manifest; so is what is wrong with the head.
        """
        # Before the manifests: a load that ends meanwhile has a manifest for its head.
        heads = self._heads.all()
        if not heads and self._has_content():
            # The first head comes before any of these.
            problem = f"no file in {self.folder}/_ottla/heads says how many loads it holds"
            heads = self._heads.all() or [TableHead(0, None, problem)]
        versions = self._versions()
        newest = max([0, *versions[-1:], *(head.version for head in heads)])
        if len(versions) < newest:
            missing = set(range(1, newest + 1)).difference(versions)
            # A listing may miss what is made meanwhile.
            for path in (path for path in map(self._path, sorted(missing)) if not path.exists()):
                problem = f"the manifest {path.name} is missing"
                yield ManifestLink(path.name, None, since, [problem])
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
            name = self._path(since.version).name
            problem = f"the manifest {name}: it is not the one that the head names"
            yield ManifestLink(name, None, since, [problem])
        for version in range(since.version + 1, newest + 1):
            path = self._path(version)
            try:
                manifest, digest = from_bytes(path.read_bytes(), path.name)
            except FileNotFoundError:
                return
            except OttlaError as error:
                yield ManifestLink(path.name, None, standing, [error.message])
                return
            standing, problems = followed_by(standing, manifest, digest)
            problems = [f"the manifest {path.name}: {problem}" for problem in problems]
            if known.get(version, digest) != digest:
                problems.append(f"the manifest {path.name}: it is not the one that the head names")
            yield ManifestLink(path.name, manifest, standing, problems)

    def _newest(self) -> tuple[Manifest | None, TableStanding]:
        """The newest manifest and where the table stands, by the newest checkpoint and since.

        Raises OttlaError as `latest` does.
        """
        newest, standing = self._by_checkpoint()
        for link in self.links(standing):
            newest, standing = self._sound(link), link.after
        return newest, standing

    def _by_checkpoint(self) -> tuple[Manifest | None, TableStanding]:
        for standing in self._checkpoints.newest_first():
            path = self._path(standing.version)
            try:
                manifest, digest = from_bytes(path.read_bytes(), path.name)
            except (OSError, OttlaError):
                continue
            if standing.agrees_with(manifest, digest):
                return manifest, standing
        return None, EMPTY

    def _sound(self, link: ManifestLink) -> Manifest:
        if link.manifest is None or link.problems:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the table in {self.folder} is damaged: {'; '.join(link.problems)}. Nothing is "
                "loaded on top of it: restore the file from a copy, or load into a new folder",
            )
        return link.manifest

    def file_stem(self, version: int, load_id: str, partition: int, start: int) -> str:
        """What the names of a range's files start with, relative to the table's folder.

        A task attempt adds a hyphen, a name of its own, and `.parquet`.
        """
        return f"data/v{version:010d}-{load_id}-p{partition}-{start:020d}"

    def commit(self, manifest: Manifest) -> None:
        """Make the load visible. Raises LoadLost where its version is taken by another."""
        sync_folder(self.data_folder)
        self._on_step("data folder synced")
        content = to_bytes(manifest)
        draft = self._manifests / f".{manifest.load_id}.tmp"
        write_synced(draft, content)
        self._on_step("manifest written")
        try:
            os.link(draft, self._path(manifest.version))
        except FileExistsError:
            raise LoadLost(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"another load committed version {manifest.version} of {self.folder} first; this "
                "one changed nothing: run it again to load what is new since",
            ) from None
        finally:
            draft.unlink()
        self._on_step("manifest linked")
        sync_folder(self._manifests)
        self._on_step("manifest synced")
        self._heads.write(manifest.version, unseal(content)[1])
        self._on_step("head written")
        if self._checkpoints.is_due(manifest.version):
            # The load counts already; the next load reports what is wrong here.
            with suppress(OSError, OttlaError):
                self._checkpoints.write(self._newest()[1])
        self._on_step("checkpoint written")

    def remove_orphans(self) -> list[str]:
        """Delete files that no manifest can ever name; return their names.

        Those are files of loads whose version another load has taken, and which run no more: one
        that does is still to find out that it has lost. Files for the next version stay.
        """
        loads = [load.split(":") for load in self._newest()[1].loads.split()]
        # Hot: by the part of the name with version and load id, since a table has many files.
        found: dict[str, list[str]] = {}
        for name in os.listdir(self.data_folder):
            found.setdefault(name[:_STEM], []).append(name)
        for version, (load_id, count) in enumerate(loads, start=1):
            stem = f"v{version:010d}-{load_id}"
            if len(found.get(stem, ())) == int(count):
                found.pop(stem, None)  # Exactly its files: the manifest need not be read.
        removed = []
        for name in (name for names in found.values() for name in names):
            match = _DATA_NAME.fullmatch(name)
            if match is not None and int(match[1]) <= len(loads):
                if self.running.may_run(match[2]):
                    continue
                path = self._path(int(match[1]))
                named = {file.path for file in from_bytes(path.read_bytes(), path.name)[0].files}
                removed += [] if f"data/{name}" in named else [name]
        for name in removed:
            (self.data_folder / name).unlink(missing_ok=True)
        self.running.sweep()
        return sorted(removed)

    def _data_names(self) -> list[str]:
        """Names of this kind of table's files in the folder of data, whether they count or not."""
        try:
            return [name for name in os.listdir(self.data_folder) if _DATA_NAME.fullmatch(name)]
        except FileNotFoundError:
            return []

    def _has_content(self) -> bool:
        """Whether there is what only comes after the first head."""
        return bool(self._versions() or self._data_names())

    def _versions(self) -> Sequence[int]:
        """Numbers of the manifests that are there, in order."""
        names = os.listdir(self._manifests)
        # Hot: a table has many, mostly all of 1 to the last; this spares a look at each of them.
        if _MANIFEST_NAMES.fullmatch("".join(names)):
            last = self._path(len(names)).name
            if not names or (max(names) == last and min(names) == self._path(1).name):
                return range(1, len(names) + 1)
        return sorted(int(match[1]) for match in map(_MANIFEST_NAME.fullmatch, names) if match)

    def _path(self, version: int) -> Path:
        return self._manifests / f"{version:020d}.json"

    def _require_own(self) -> None:
        """Refuse a folder with files of others: a table would grow among them."""
        if not self.folder.is_dir():
            return
        others = sorted(name for name in os.listdir(self.folder) if name not in _NO_FILES_OF_OTHERS)
        # Only after the listing: another first load, which may run at this moment, makes this
        # folder before anything else, so whatever the listing saw of that load came later.
        if not others or (self.folder / "_ottla").is_dir():
            return
        kind = next((word for name, word in _OTHER_TABLES.items() if name in others), "")
        what = kind or f"other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''})"
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{self.folder} holds {what} and no table of ottla; choose an empty or a new folder",
        )

    def _require_put_if_absent(self) -> None:
        """Show that a second link to one name is refused here, as the commit relies on it."""
        source = self._manifests / f".probe-{uuid.uuid4().hex}"
        target = source.with_suffix(".taken")
        source.touch()
        try:
            os.link(source, target)
            os.link(source, target)
        except FileExistsError:
            return
        except OSError as error:
            raise _no_put_if_absent(self.folder, str(error)) from error
        finally:
            source.unlink()
            target.unlink(missing_ok=True)
        raise _no_put_if_absent(self.folder, "a taken name was given away again")


def _no_put_if_absent(folder: object, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{folder} can't hold a table: {why}. A load is made visible by creating a file only if "
        "it is absent; choose a folder on a local or POSIX filesystem with hard links",
    )
