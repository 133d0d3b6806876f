"""A table whose live files are listed in the log of a table format, Delta or Iceberg.

    DIR/_ottla/manifests/00000000000000000003-<digest>.json
    DIR/_ottla/heads/00000000000000000003.json
    DIR/data/v0000000003-<load id>-p<partition>-<start>-<attempt>.parquet
    DIR/_delta_log/… or DIR/metadata/…

A commit first stores its manifest, which has no effect yet. Then one atomic step of the format adds
the files to the log and names the manifest there, by version and digest. A manifest that the log
does not name has no effect; once another manifest has its version, a later load removes it. The log
names the newest manifest of the chain, and each manifest has the digest of the previous one. The
head marker records the number of loads, so that a rolled-back log is noticed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted
from ottla.lake.model.chain import EMPTY, TableStanding, followed_by
from ottla.lake.model.event_times import Buckets
from ottla.lake.model.layout import buckets_of_table, columns_of
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest, from_bytes
from ottla.lake.store.errors import as_log_error
from ottla.lake.store.store import FileStore, StoreUnreachable
from ottla.lake.tables.commit import doubted_once_tried
from ottla.lake.tables.format_log import NamedLoad, TableLog, compare, restore_after_load
from ottla.lake.tables.formats import HEADS, MANIFESTS
from ottla.lake.tables.markers import TableHead
from ottla.lake.tables.table import RESTORED, Agreement, LakeTable, ManifestLink

_MANIFEST_NAME = re.compile(r"(\d{20})-([0-9a-f]{64})\.json")

# A manifest and its digest, a description of its problem, or None if the manifest is missing.
_Found = tuple[Manifest, str] | str | None


class LoggedTable(LakeTable):
    """A Delta or Iceberg table: files and manifests in a store, and the format's log."""

    _link_kind = "the manifest of"

    def __init__(
        self, store: FileStore, log: TableLog, on_step: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(store, on_step)
        self.format = log.kind.lower()
        self._log = log

    def live_paths(self) -> Sequence[str]:
        return sorted(self._log.live_paths())

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        # Read the entries of other programs before they are dropped from the log.
        entries = self._log.read(columns_of(self._newest()[0])).entries
        foreign = [entry for entry in entries if entry.load is None]
        touched = {path for entry in foreign for path in (*entry.added, *entry.removed)}
        ours = {file.path for file in self.live_files()}
        return touched | ours | self._log.forget(oldest, dry_run=dry_run)

    def require_fitting(self, columns: Any, buckets: Buckets) -> None:
        self._log.require_fitting(columns, buckets)

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
        # Read heads before the log: a load that ends meanwhile writes to the log before its head
        # marker, so the log is never behind the heads.
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
        elif restored := self._restore_problem(newest):
            yield ManifestLink(RESTORED, None, since, [restored])

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

    def _restore_problem(self, newest: NamedLoad) -> str | None:
        """Return a problem if another program restored a version before the newest load.

        The log may name the load all the same. This reads only one entry of the log if that is the
        load's, and only the list of live files if the load's are among them.
        """
        first = next(self._log.newest_entries(), None)
        if first is None or first.load is not None:
            return None
        live = set(self._log.live_paths())
        if self._has_changes(newest, live):
            return None
        restore = restore_after_load(self._log.newest_entries())
        if restore is None:
            return None
        there = live | restore.removed_later
        files: dict[str, DataFile] = {}
        for _, one in reversed(self._found_back(EMPTY, newest)[0]):
            if isinstance(one, tuple):
                live_after(files, one[0])
        gone = [file for file in files.values() if file.path not in there]
        starts: dict[int, int] = {}
        for file in gone:
            starts[file.partition] = min(file.start, starts.get(file.partition, file.start))
        offsets = ",".join(f"{partition}:{starts[partition]}" for partition in sorted(starts))
        again = f"load the offsets again into a new table (--from {offsets}), or " if gone else ""
        load, entry = restore.load, restore.entry
        back = f"version {load.number}" if load else f"the version of load {newest.version}"
        return (
            f"another program restored {entry.restored}, from before load {newest.version} "
            f"({entry.name}): {counted(len(gone), 'file')} of loads with "
            f"{counted(sum(file.rows for file in gone), 'row')} left the table; {again}restore "
            f"{back}, or a later one from before the restore, if its files are still there"
        )

    def _has_changes(self, newest: NamedLoad, live: AbstractSet[str]) -> bool:
        """Return whether the newest commit that changed files is not undone in the `live` files.

        A compaction may be undone, as its rows are in the files that it removed.
        """
        digests = self._names(newest.version - 1)
        digest = next((at for version, at in digests if newest.is_of(version, at)), None)
        version = newest.version
        while digest is not None:
            found = self._manifest(version, digest)
            if not isinstance(found, tuple):
                return True  # Reported with the chain.
            files = {file.path for file in found[0].files}
            removed = {file.path for file in found[0].removed}
            if files or removed:
                if files <= live and not removed & live:
                    return True
                if found[0].kind != "compaction" or not removed <= live:
                    return False
            version, digest = version - 1, found[0].previous
        return True

    def _chain_links(self, since: TableStanding, newest: NamedLoad) -> Iterator[ManifestLink]:
        """Yield the manifests after `since`, oldest first.

        They are found from the newest back to the oldest, because each names its predecessor.
        """
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
        """Return the manifests from the newest back to `since`, and the predecessor of the oldest.

        Each manifest is found by the digest in its successor. If the successor is missing, a
        manifest is found only if it is the only one of its version.
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
            # Raise errors of the storage: they do not mean that the manifest is damaged.
            content = self.store.read(MANIFESTS + name)
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

    def _read(self, version: int) -> Manifest:
        found = self._manifest(version, dict(self._names(version - 1)).get(version, ""))
        if not isinstance(found, tuple):
            raise self._damaged(found or f"the manifest of load {version} is missing")
        return found[0]

    def _has_content(self) -> bool:
        return bool(self._names())

    def _made_visible(self, manifest: Manifest, content: bytes, digest: str) -> bool:
        path = MANIFESTS + _name(manifest.version, digest)
        self.store.put_if_absent(path, content)
        self._on_step("manifest stored")
        # If the process crashes from here on, the log may contain the load.
        self._on_step("manifest offered")
        if self._log.commit(manifest, digest) or self._counts(manifest.version, digest):
            return True
        self.store.remove(path)
        return False

    def _counts(self, version: int, digest: str) -> bool:
        """Return whether the manifest is in the chain, although the log already names a later one.

        This happens if the answer to this commit was lost and another commit followed at once.
        """
        with doubted_once_tried(self.store.url, version) as doubt:
            doubt.is_tried = True
            return any(link.after.digest == digest for link in self.links())

    def remove_orphans(self) -> list[str]:
        """Delete orphans, and also manifests that lost their version to another manifest."""
        names = self._names()
        newest = self._newest()[1].version
        taken = [at for at, _ in names if at <= newest]
        if len(taken) > len(set(taken)):
            chain = {link.after.digest for link in self.links()}
            for version, digest in names:
                if version <= newest and digest not in chain:
                    self.store.remove(MANIFESTS + _name(version, digest))
        return super().remove_orphans()

    def _names(self, since: int = 0) -> list[tuple[int, str]]:
        """Return the versions and digests of all stored manifests after `since`.

        Some of them may not be named by the log.
        """
        after = f"{since + 1:020d}" if since else ""
        names = map(_MANIFEST_NAME.fullmatch, self.store.names(MANIFESTS, after))
        return sorted((int(match[1]), match[2]) for match in names if match)


def _name(version: int, digest: str) -> str:
    return f"{version:020d}-{digest}.json"
