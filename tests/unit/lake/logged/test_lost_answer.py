"""A commit whose answer is lost, and which another one follows at once, still counts."""

import uuid
from pathlib import Path

import ottla.lake
from ottla.lake.manifest import Manifest
from ottla.lake.tables.delta import DeltaLog
from ottla.lake.tables.logged import LoggedTable
from ottla.lake.tables.opening import open_table
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit, written


class LateLog(DeltaLog):
    """Names the load, and another writer's on top of it before the answer is looked up."""

    def commit(self, manifest: Manifest, digest: str) -> bool:
        assert super().commit(manifest, digest)
        commit(open_table(self._url), 10, partitions=1)
        return super().commit(manifest, digest)


def test_its_manifest_stays_and_it_is_not_called_lost(tmp_path: Path) -> None:
    commit(open_table(str(tmp_path), "delta"), 10, partitions=1)
    store = open_table(str(tmp_path)).store
    table = LoggedTable.create_or_open(store, LateLog(store))
    table.commit(written(table, 10, uuid.uuid4().hex, partitions=1))
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.rows, found.loads) == ([], 30, 3)
    assert readers.rows_by_format(tmp_path, "delta") == readers.expected(1, 30)
