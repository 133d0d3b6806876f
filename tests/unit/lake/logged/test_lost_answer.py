"""A commit whose answer is lost, and which another one follows at once, still counts."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import ErrorCode
from ottla.lake.model.manifest import Manifest
from ottla.lake.store.store import PutUnknown, StoreUnreachable
from ottla.lake.tables.delta import DeltaLog
from ottla.lake.tables.formats import Format
from ottla.lake.tables.iceberg import IcebergLog
from ottla.lake.tables.iceberg_catalog import CatalogSettings
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
    table = LoggedTable(store, LateLog(store)).writable()
    table.commit(written(table, 10, uuid.uuid4().hex, partitions=1))
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.rows, found.loads) == ([], 30, 3)
    assert readers.rows_by_format(tmp_path, "delta") == readers.expected(1, 30)


class _Vanishing:
    """The store of the log does the commit, and answers nothing from then on."""

    has_vanished = False

    def _try(self, *arguments: Any) -> None:
        super()._try(*arguments)  # type: ignore[misc]  # Of the log.
        self.has_vanished = True
        raise OSError("Generic S3 error: HTTP error: error sending request")

    def _open(self) -> Any:
        return self._answered(super()._open)  # type: ignore[misc]

    def _load(self) -> Any:
        return self._answered(super()._load)  # type: ignore[misc]

    def _answered(self, look: Callable[[], Any]) -> Any:
        if self.has_vanished:
            raise StoreUnreachable(ErrorCode.KAFKA_STORAGE_ERROR, "no answer")
        return look()


class VanishingDelta(_Vanishing, DeltaLog):
    """As `_Vanishing`."""


class VanishingIceberg(_Vanishing, IcebergLog):
    """As `_Vanishing`."""


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_commit_without_an_answer_is_not_known_to_be_undone(tmp_path: Path, kind: Format) -> None:
    """So that its files are not removed: the table counts them."""
    commit(open_table(str(tmp_path), kind), 10, partitions=1)
    store = open_table(str(tmp_path)).store
    log = (
        VanishingDelta(store)
        if kind == "delta"
        else VanishingIceberg(store, CatalogSettings("ottla", ("ottla", tmp_path.name)))
    )
    table = LoggedTable(store, log).writable()
    with pytest.raises(PutUnknown, match=r"not known whether version 2 .* was committed"):
        table.commit(written(table, 10, uuid.uuid4().hex, partitions=1))
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.rows, found.loads) == ([], 20, 2)
