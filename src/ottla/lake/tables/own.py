"""Ottla's own table format: Parquet files that are live once a numbered manifest names them.

A load becomes visible by one atomic step: its manifest takes the next number, which fails if the
number is taken (`FileStore.put_if_absent`). Before that step its files are stored but have no
effect; after it, data and offsets are visible together.

    DIR/_ottla/manifests/00000000000000000001.json
    DIR/_ottla/heads/00000000000000000001.json          how many loads there are
    DIR/_ottla/checkpoints/00000000000000000020.json    state so far, to read fewer manifests
    DIR/data/v0000000001-<load id>-p<partition>-<start>-<attempt>.parquet

Each step is durable before the next: the files, the manifest, the head.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ottla.base.errors import OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding, followed_by
from ottla.lake.model.manifest import Manifest, from_bytes
from ottla.lake.tables.data_files import has_data_files
from ottla.lake.tables.formats import HEADS, MANIFESTS
from ottla.lake.tables.markers import TableHead
from ottla.lake.tables.table import LakeTable, ManifestLink

_MANIFEST_NAME = re.compile(r"(\d{20})\.json")
_MANIFEST_NAMES = re.compile(r"(?:\d{20}\.json)*")


class OwnTable(LakeTable):
    """A table in ottla's own format."""

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        # Read heads before manifests: a load that ends meanwhile writes its manifest before its
        # head marker, so no manifest seems to be missing.
        heads = self._heads.all()
        if not heads and self._has_content():
            # The first head marker is written before any manifest or data file.
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
                # Raise errors of the storage: they do not mean that the manifest is damaged.
                content = self.store.read(MANIFESTS + name)
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

    def _made_visible(self, manifest: Manifest, content: bytes, digest: str) -> bool:  # noqa: ARG002  # The number decides.
        # If the process crashes from here on, the manifest may have been stored.
        self._on_step("manifest offered")
        return self.store.put_if_absent(MANIFESTS + _name(manifest.version), content)

    def _find(self, standing: TableStanding) -> tuple[Manifest, str] | None:
        name = _name(standing.version)
        try:
            return from_bytes(self.store.read(MANIFESTS + name), name)
        except (OSError, OttlaError):
            return None

    def _read(self, version: int) -> Manifest:
        return from_bytes(self.store.read(MANIFESTS + _name(version)), _name(version))[0]

    def _has_content(self) -> bool:
        return bool(self._versions(0)[0] or has_data_files(self.store))

    def _versions(self, since: int) -> tuple[Sequence[int], int]:
        """Return the numbers of the stored manifests in order, and the first number listed.

        Manifests up to `since` are included if the store lists a whole folder anyway.
        """
        if not self.store.lists_all_at_once:
            names = self.store.names(MANIFESTS, after=_name(since))
            return _numbers(names), since + 1
        names = self.store.names(MANIFESTS)
        # Hot: a table has many manifests, usually without a gap. Then no name has to be parsed.
        is_whole = (
            _MANIFEST_NAMES.fullmatch("".join(names))
            and names
            and (max(names), min(names)) == (_name(len(names)), _name(1))
        )
        return (range(1, len(names) + 1) if is_whole else _numbers(names)), 1

    def _is_there(self, version: int) -> bool:
        try:
            self.store.size(MANIFESTS + _name(version))
        except FileNotFoundError:
            return False
        return True


def _numbers(names: Sequence[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(_MANIFEST_NAME.fullmatch, names) if match)


def _name(version: int) -> str:
    return f"{version:020d}.json"
