"""A table whose files count by the log of a table format: Delta's or Iceberg's.

    DIR/_ottla/manifests/00000000000000000003-<digest>.json
    DIR/_ottla/heads/00000000000000000003.json
    DIR/data/v0000000003-<load id>-p<partition>-<start>-<attempt>.parquet
    DIR/_delta_log/… or DIR/metadata/…

A commit first stores its manifest, which means nothing yet, and then adds its files to the log and
names the manifest there, by version and digest, in one step of the format's own. A manifest that
the log does not name does not count: the next load removes it, once another has its version.

Which manifests form the chain follows from the newest, which the log names, since each has the
digest of the one before. The head marker says how many loads there were, so that a log that was
rolled back is noticed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ottla.base.errors import OttlaError
from ottla.lake.folder.library_faults import as_log_error
from ottla.lake.log.chain import EMPTY, TableStanding, followed_by
from ottla.lake.log.checkpoints import TableCheckpoints
from ottla.lake.log.heads import Heads, TableHead
from ottla.lake.log.sealed import unseal
from ottla.lake.manifest import DataFile, Manifest, from_bytes, to_bytes
from ottla.lake.stores.put_until_known import StoreUnreachable
from ottla.lake.stores.store import FileStore
from ottla.lake.tables import data_files
from ottla.lake.tables.agreement import compare
from ottla.lake.tables.columns import buckets_of_table, columns_of
from ottla.lake.tables.durable import doubted_once_tried
from ottla.lake.tables.log import NamedLoad, TableLog
from ottla.lake.tables.ownership import HEADS, OWN_FOLDER
from ottla.lake.tables.running import RunningLoads
from ottla.lake.tables.standing import SoundChain
from ottla.lake.tables.table import Agreement, ManifestLink

_MANIFESTS = f"{OWN_FOLDER}manifests/"
_MANIFEST_NAME = re.compile(r"(\d{20})-([0-9a-f]{64})\.json")

# A manifest and its digest, None where it is gone, or in words what is wrong with its file.
_Found = tuple[Manifest, str] | str | None


def _no_step(_name: str) -> None:
    """The default of `on_step`."""


class LoggedTable:
    """The table in one store with one log."""

    file_stem = staticmethod(data_files.file_stem)

    def __init__(
        self, store: FileStore, log: TableLog, on_step: Callable[[str], None] = _no_step
    ) -> None:
        self.store = store
        self.format = log.kind.lower()
        self._log = log
        self._heads = Heads(store, HEADS)
        self._checkpoints = TableCheckpoints(store, f"{OWN_FOLDER}checkpoints/")
        self.running = RunningLoads(store, f"{OWN_FOLDER}running/")
        self._on_step = on_step
        self._writes = False
        self._chain = SoundChain(
            store.url,
            self._heads,
            self._checkpoints,
            self.links,
            self._find,
            "the manifest of",
        )

    @classmethod
    def create_or_open(
        cls, store: FileStore, log: TableLog, on_step: Callable[[str], None] = _no_step
    ) -> "LoggedTable":
        """Open the table to write, and make what a new one begins with.

        The log itself is made by the first commit.
        """
        table = cls(store, log, on_step)
        store.prepare((_MANIFESTS, data_files.FOLDER))
        table._heads.require_one(lambda: bool(table._names()))
        table._writes = True
        return table

    def latest(self) -> tuple[Manifest | None, str | None]:
        return self._chain.latest(repairs_head=self._writes)

    def history(self) -> Iterator[Manifest]:
        return self._chain.history()

    def live_files(self) -> Sequence[DataFile]:
        return self._chain.live_files()

    def live_paths(self) -> Sequence[str]:
        return sorted(self._log.live_paths())

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        # Before the log forgets entries of theirs.
        entries = self._log.read(columns_of(self._chain.newest()[0])).entries
        foreign = [entry for entry in entries if entry.load is None]
        touched = {path for entry in foreign for path in (*entry.added, *entry.removed)}
        ours = {file.path for file in self.live_files()}
        return touched | ours | self._log.forget(oldest, dry_run=dry_run)

    def must_rewrite(self, columns: Any) -> bool:
        return self._log.must_rewrite(columns)

    def audit(self, chain: Sequence[tuple[Manifest, str | None]]) -> Agreement:
        try:
            newest = chain[-1][0] if chain else None
            reading = self._log.read(columns_of(newest), buckets_of_table(newest))
            with as_log_error(self._log.kind, self.store.url):
                return compare(self._log.kind, reading, chain)
        except StoreUnreachable:
            raise
        except OttlaError as error:
            return Agreement([error.message])

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        # Before the log: a load that ends meanwhile is in the log before it has a head.
        heads = self._heads.all()
        try:
            newest = self._log.newest()
        except StoreUnreachable:
            raise
        except OttlaError as error:
            yield ManifestLink("log", None, since, [error.message])
            return
        if not heads and (newest.version or self._names()):
            problem = f"no file in {self.store.address(HEADS)} says how many loads it "
            heads = self._heads.all() or [TableHead(0, None, problem=f"{problem}holds")]
        yield from self._chain_links(since, newest)
        problems = [head.problem for head in heads if head.problem is not None]
        problems += self._head_problems(heads, newest)
        if problems:
            yield ManifestLink("head", None, since, problems)

    def _head_problems(self, heads: Sequence[TableHead], newest: NamedLoad) -> list[str]:
        kind = self._log.kind
        if newest.problem:
            return [f"{kind}'s log contradicts itself: {newest.problem}"]
        last = max((head.version for head in heads), default=0)
        if last > newest.version:
            what = f"ends with load {newest.version}" if newest.version else "names no load"
            return [
                f"{kind}'s log {what}, and there were {last}: it was rolled back or made anew by "
                "another program"
            ]
        return [
            f"{kind}'s log names another manifest of load {head.version} than the head"
            for head in heads
            if head.problem is None
            and head.version == newest.version
            and not newest.is_of(head.version, head.manifest)
        ]

    def _chain_links(self, since: TableStanding, newest: NamedLoad) -> Iterator[ManifestLink]:
        """The manifests from `since` to the newest; found from the newest back, given forward."""
        found, before = self._found_back(since, newest)
        if newest.version >= since.version and not before.is_of(since.version, since.digest):
            problem = f"load {since.version + 1} does not follow the manifest of {since.version}"
            yield ManifestLink(f"load {since.version}", None, since, [problem])
        standing = since
        for version, one in reversed(found):
            if one is None or isinstance(one, str):
                problem = one or f"the manifest of load {version} is missing"
                yield ManifestLink(f"load {version}", None, standing, [problem])
                return
            manifest, digest = one
            standing, problems = followed_by(standing, manifest, digest)
            problems = [f"the manifest of load {version}: {problem}" for problem in problems]
            yield ManifestLink(f"load {version}", manifest, standing, problems)

    def _found_back(
        self, since: TableStanding, newest: NamedLoad
    ) -> tuple[list[tuple[int, _Found]], NamedLoad]:
        """The manifests from the newest back to `since`, each by what the one behind it names.

        Returned with what the oldest of them names. Behind one that can't be had, the only one of
        its version is taken.
        """
        digests: dict[int, list[str]] = {}
        for version, digest in self._names(since.version):
            digests.setdefault(version, []).append(digest)
        found: list[tuple[int, _Found]] = []
        named = newest
        while named.version > since.version:
            version = named.version
            fitting = [one for one in digests.get(version, ()) if named.is_of(version, one)]
            one = self._manifest(version, fitting[0]) if len(fitting) == 1 else None
            found.append((version, one))
            named = NamedLoad(version - 1, one[0].previous or "" if isinstance(one, tuple) else "")
        return found, named

    def _manifest(self, version: int, digest: str) -> _Found:
        name = _name(version, digest)
        try:
            # What the storage refuses, or does not answer, is no damage, and is raised.
            content = self.store.read(_MANIFESTS + name)
        except FileNotFoundError:
            return None
        try:
            manifest, actual = from_bytes(content, name)
        except OttlaError as error:
            return error.message
        if actual != digest or manifest.version != version:
            return f"the manifest {name} is another's, under its name"
        return manifest, digest

    def _find(self, standing: TableStanding) -> tuple[Manifest, str] | None:
        found = self._manifest(standing.version, standing.digest) if standing.digest else None
        return found if isinstance(found, tuple) else None

    def commit(self, manifest: Manifest) -> None:
        content = to_bytes(manifest)
        digest = unseal(content)[1]
        path = _MANIFESTS + _name(manifest.version, digest)
        self.store.put_if_absent(path, content)
        self._on_step("manifest stored")
        # From here on a crash may leave the load in the log.
        self._on_step("manifest offered")
        if not self._log.commit(manifest, digest) and not self._counts(manifest.version, digest):
            self.store.remove(path)
            raise self._chain.lost(manifest)
        self._on_step("manifest written")
        self._chain.committed(manifest.version, digest, self._on_step)

    def _counts(self, version: int, digest: str) -> bool:
        """Whether the chain has the manifest, though the log names a later one by now.

        So it is where the answer to the commit was lost, and another came on top of it at once.
        """
        with doubted_once_tried(self.store.url, version) as doubt:
            doubt.is_tried = True
            return any(link.after.digest == digest for link in self.links())

    def _loads_now(self) -> list[str]:
        return self._chain.newest()[1].loads.split()

    def remove_orphans(self) -> list[str]:
        standing = self._chain.newest()[1]
        names = self._names()
        several = [at for at, _ in names if at <= standing.version]
        if len(several) > len(set(several)):
            chain = {link.after.digest for link in self.links()}
            for version, digest in names:
                if version <= standing.version and digest not in chain:
                    self.store.remove(_MANIFESTS + _name(version, digest))
        digests = dict(self._names())

        def paths_named(version: int) -> set[str]:
            found = self._manifest(version, digests.get(version, ""))
            if not isinstance(found, tuple):
                raise self._chain.damaged(found or f"the manifest of load {version} is missing")
            return {file.path for file in (*found[0].files, *found[0].dead_letters)}

        return data_files.remove_orphans(
            self.store,
            self.running,
            self._loads_now,
            paths_named,
        )

    def _names(self, since: int = 0) -> list[tuple[int, str]]:
        """Versions and digests of the manifests that are there, whether they count or not."""
        after = f"{since + 1:020d}" if since else ""
        names = map(_MANIFEST_NAME.fullmatch, self.store.names(_MANIFESTS, after))
        return sorted((int(match[1]), match[2]) for match in names if match)


def _name(version: int, digest: str) -> str:
    return f"{version:020d}-{digest}.json"
