"""Where a table stands follows from its ledgers; a manifest that says otherwise is not believed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from tests.unit.lake.tables import commit, edit, forge, manifest_path

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def table(tmp_path: Path) -> OwnTable:
    """Three loads of ten rows of each of two partitions."""
    table = open_table(str(tmp_path))
    for _ in range(3):
        commit(table, 10)
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.rows, found.loads) == ([], 60, 3)
    return table


def problems(table: OwnTable) -> str:
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert not found.proven
    return "\n".join(found.problems)


CHANGES: dict[str, Change] = {
    "position moved back": lambda m: m["positions"].update({"0": 5}),
    "position moved on": lambda m: m["positions"].update({"1": 40}),
    "position removed": lambda m: m["positions"].pop("1"),
    "position added": lambda m: m["positions"].update({"2": 7}),
    "ledger's end": lambda m: m["ledgers"][0].update(end=29, loaded=9),
    "ledger's start": lambda m: m["ledgers"][0].update(start=19, loaded=11),
    "ledger's count": lambda m: m["ledgers"][0].update(loaded=9, deleted=1),
    "ledger doubled": lambda m: m["ledgers"].append(m["ledgers"][0]),
    "ledger removed": lambda m: m["ledgers"].pop(),
    "file removed": lambda m: m["files"].pop(),
    "file doubled": lambda m: m["files"].append(m["files"][0]),
    "file's rows": lambda m: m["files"][0].update(rows=9),
    "file's range": lambda m: m["files"][0].update(start=m["files"][0]["end"] - 1),
    "file's partition": lambda m: m["files"][0].update(partition=1),
    "file outside the table": lambda m: m["files"][0].update(path="../other.parquet"),
    "loss that no ledger counts": lambda m: m.update(accepted_loss={"0": 5}),
    "rows": lambda m: m.update(rows=19),
    "hash": lambda m: m.update(hash="0" * 32),
    "total": lambda m: m.update(total_rows=61),
    "total hash": lambda m: m.update(total_hash="0" * 32),
    "topic": lambda m: m.update(topic="fligths"),
    "chain": lambda m: m.update(previous="0" * 64),
    "version": lambda m: m.update(version=4),
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_manifest_is_found_by_verify_and_refused_by_a_load(
    table: OwnTable, change: Change, version: int
) -> None:
    """Each names the manifest; the digest of its bytes is wrong."""
    edit(manifest_path(table.store.root, version), change)

    assert manifest_path(table.store.root, version).name in problems(table)
    with pytest.raises(OttlaError, match=manifest_path(table.store.root, version).name):
        table.latest()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_forged_manifest_contradicts_itself_or_the_chain(
    table: OwnTable, change: Change, version: int
) -> None:
    """With a digest that was computed anew, in the newest manifest as in the first."""
    forge(manifest_path(table.store.root, version), change)

    assert re.search(r"the manifest \d{20}\.json: ", problems(table))
    with pytest.raises(OttlaError, match=r"the manifest \d{20}\.json: .*load into a new folder"):
        table.latest()
