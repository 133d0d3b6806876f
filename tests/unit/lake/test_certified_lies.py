"""Sixteen lies that a certificate was made to tell, and the checker finds each, in every format.

Where the manifests in the table were written anew with the same lie, too; the lies about what only
manifests say are told without that.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo

import ottla.lake
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit, forge, rows
from tests.unit.lake.test_forged_certificates import Document, checker, wrong

FORMATS = ["parquet", "delta", "iceberg"]
Lie = Callable[[Path, Document], object]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of each format: three loads, a compaction of them, and another load."""
    made = {}
    for kind in FORMATS:
        made[kind] = tmp_path_factory.mktemp(kind) / "table"
        for number in range(4):
            if number == 3:
                ottla.lake.compact(str(made[kind]), master="here")
            commit(open_table(str(made[kind]), kind), 5)  # type: ignore[arg-type]
    return made


@pytest.fixture(params=FORMATS)
def issued(request: pytest.FixtureRequest, tables: dict[str, Path]) -> Any:
    """A table and its certificate, which holds. It is put back afterwards."""
    folder = tables[request.param]
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    document = ottla.lake.certificate(str(folder), bootstrap=None)
    assert wrong(folder, document) == []
    yield folder, json.loads(ottla.lake.certificate_text(document))
    shutil.rmtree(folder)
    kept.rename(folder)


def seal_again(folder: Path, known: Document) -> None:
    """Write the lie into the manifests, and their digests into the certificate."""
    previous = None
    for load in known["loads"]:
        (path,) = (folder / "_ottla" / "manifests").glob(f"{load['version']:020d}*.json")
        said = {
            name: load[name] for name in ("kind", "ledgers", "files", "accepted_loss", "skipped")
        }
        said |= {"previous": previous, "topic": known["topic"], "positions": known["positions"]}
        forge(path, lambda fields, said=said: fields.update(said))
        digest = json.loads(path.read_bytes())["sha256"]
        load.update(previous=previous, digest=digest)
        previous = digest


def write(folder: Path, file: dict[str, Any], content: pa.RecordBatch) -> dict[str, Any]:
    """A file of these rows in place of `file`."""
    path = folder / file["path"]
    pq.write_table(pa.Table.from_batches([content]), path)
    hashed = sum(map(checker.row_hash, checker.rows_of(path))) % 2**128
    digest = checker.digest_of(path.read_bytes())
    size = path.stat().st_size
    return file | {
        "rows": content.num_rows,
        "hash": f"{hashed:032x}",
        "sha256": digest,
        "size_bytes": size,
    }


def offsets_doubled(folder: Path, known: Document) -> None:
    """Two files hold one offset; another one is missing, so that sums and ledgers agree."""
    files = known["loads"][4]["files"]
    first = write(folder, files[0] | {"end": 18}, rows(0, 15, 18))
    more = files[0] | {"path": files[0]["path"].replace("p0", "p2"), "start": 17, "end": 20}
    second = write(folder, more, rows(0, 17, 19))
    known["loads"][4]["files"] = [first, second, files[1]]
    everything = [*known["loads"][3]["files"], *known["loads"][4]["files"]]
    known["rows"], known["hash"] = checker.sums(everything)


def as_kind(kind: str) -> Lie:
    """The last load has no ledger, since it is called something else."""

    def lie(_folder: Path, known: Document) -> None:
        known["loads"][4].update(kind=kind, ledgers=[])
        known["positions"] = {"0": 15, "1": 15}

    return lie


def compaction_drops(folder: Path, known: Document) -> None:
    """A compaction that leaves a row out."""
    files = known["loads"][3]["files"]
    files[0] = write(folder, files[0], rows(0, 0, 14))
    known["rows"], known["hash"] = checker.sums([*files, *known["loads"][4]["files"]])


def compaction_moves(_folder: Path, known: Document) -> None:
    """Its file claims another range."""
    known["loads"][3]["files"][0]["end"] = 20


def of_load(number: int, **fields: Any) -> Lie:
    return lambda _folder, known: known["loads"][number].update(fields)


def of_verdict(**fields: Any) -> Lie:
    return lambda _folder, known: known["verdict"].update(fields)


def of_document(**fields: Any) -> Lie:
    return lambda _folder, known: known.update(fields)


LIES: dict[str, tuple[Lie, bool]] = {
    # By name: how, and whether the manifests tell it, too.
    "offsets doubled across files": (offsets_doubled, True),
    "replacement without a ledger": (as_kind("replacement"), True),
    "compaction that adds rows": (as_kind("compaction"), True),
    "compaction that drops a row": (compaction_drops, True),
    "compaction of another range": (compaction_moves, True),
    "epoch with rows": (as_kind("epoch"), True),
    "load of another kind": (as_kind("changelog"), True),
    "loss that no ledger has": (of_load(1, accepted_loss={"0": 3}), True),
    "loss in a compaction": (of_load(3, accepted_loss={"0": 3}), True),
    "offsets left out": (of_load(1, skipped=[{"partition": 0, "start": 5, "end": 6}]), True),
    "topic": (of_document(topic="others"), True),
    "topic id": (of_document(topic_id="0" * 22), False),
    "time of a load": (of_load(1, created_ms=2), False),
    "more rows compared": (of_verdict(topic_was_read=True, compared=41), False),
    "compared without the topic": (of_verdict(compared=10), False),
    "problems overridden": (of_verdict(overridden=["manifest 2 was missing"]), False),
}


@pytest.mark.parametrize(("lie", "is_in_manifests"), LIES.values(), ids=LIES.keys())
def test_each_lie_is_found(issued: tuple[Path, Document], lie: Lie, is_in_manifests: bool) -> None:
    """The certificate's own digest was computed anew."""
    folder, known = issued
    lie(folder, known)
    assert wrong(folder, known) != []
    if is_in_manifests:
        seal_again(folder, known)
        found = wrong(folder, known)
        assert [one for one in found if "readers by the table's log" not in one] != []
        assert not any("with its digest" in one or "says otherwise" in one for one in found)


def delete_rows(folder: Path) -> None:
    """As a program does that knows the format only."""
    if (folder / "_delta_log").is_dir():
        DeltaTable(str(folder)).delete("partition = 0")
        return
    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{folder}/_ottla/catalog.db")
    catalog.load_table(catalog.list_tables("ottla")[0]).delete(EqualTo("partition", 0))


@pytest.mark.parametrize("issued", ["delta", "iceberg"], indirect=True)
def test_rows_that_were_deleted_in_the_log_are_missed(issued: tuple[Path, Document]) -> None:
    """The files are there still; readers do not see them."""
    folder, known = issued
    delete_rows(folder)
    assert "readers by the table's log do not see" in "\n".join(wrong(folder, known))


def test_a_certificate_holds_after_later_loads(issued: tuple[Path, Document]) -> None:
    """Their files are no lie of it."""
    folder, known = issued
    kind = "delta" if (folder / "_delta_log").is_dir() else "parquet"
    kind = "iceberg" if (folder / "metadata").is_dir() else kind
    commit(open_table(str(folder), kind), 5)  # type: ignore[arg-type]
    assert wrong(folder, known) == []
