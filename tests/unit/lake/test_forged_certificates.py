"""The checker of certificates, which knows nothing of ottla, refuses what was forged."""

import importlib.util
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rig.paths import ROOT

import ottla.lake
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit

Document = dict[str, Any]
_SPEC = importlib.util.spec_from_file_location("checker", ROOT / "examples/check_certificate.py")
assert _SPEC is not None
assert _SPEC.loader is not None
checker = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(checker)


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def issued(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Document]:
    """A table of three loads, and its certificate, which holds."""
    folder = tmp_path / "table"
    for _ in range(3):
        commit(open_table(str(folder), request.param), 5)
    document = ottla.lake.certificate(str(folder), bootstrap=None)
    assert wrong(folder, document) == []
    return folder, json.loads(ottla.lake.certificate_text(document))


def wrong(folder: Path, document: Document, *, sealed_again: bool = True) -> list[str]:
    if sealed_again:
        document = {**document, "sha256": "0" * 64}
        text = ottla.lake.certificate_text(document)
        document["sha256"] = sha256(text.encode()).hexdigest()
    return list(checker.wrong(ottla.lake.certificate_text(document), folder))


def file_changed(folder: Path, known: Document) -> None:
    """A row, with the digest of the file: only the hash of the row differs."""
    file = known["loads"][0]["files"][0]
    path = folder / file["path"]
    rows = pq.read_table(path)
    at = rows.schema.get_field_index("value")
    values = pa.array([b"x", *rows["value"].to_pylist()[1:]], pa.binary())
    pq.write_table(rows.set_column(at, rows.schema.field(at), values), path)
    content = path.read_bytes()
    file.update(sha256=sha256(content).hexdigest(), size_bytes=len(content))


def file_elsewhere(folder: Path, known: Document) -> None:
    file = known["loads"][0]["files"][0]
    (folder.parent / "x.parquet").write_bytes((folder / file["path"]).read_bytes())
    file["path"] = "../x.parquet"


def without_a_file(_folder: Path, known: Document) -> None:
    """Its rows are gone from all sums, and not from the ledger."""
    gone = known["loads"][2]["files"].pop()
    known["rows"] -= gone["rows"]
    known["hash"] = f"{(int(known['hash'], 16) - int(gone['hash'], 16)) % 2**128:032x}"


def rows_called_compacted(folder: Path, known: Document) -> None:
    """A file is left out, and its rows are called compacted."""
    without_a_file(folder, known)
    known["loads"][2]["ledgers"][1].update(loaded=0, compacted=5)


def ledger(load: int, **terms: int) -> Callable[[Path, Document], None]:
    return lambda _folder, known: known["loads"][load]["ledgers"][0].update(terms)


def field(**fields: Any) -> Callable[[Path, Document], None]:
    return lambda _folder, known: known.update(fields)


def of_load(load: int, **fields: Any) -> Callable[[Path, Document], None]:
    return lambda _folder, known: known["loads"][load].update(fields)


def another_digest(_folder: Path, known: Document) -> None:
    """A chain of its own."""
    known["loads"][1]["digest"] = known["loads"][2]["previous"] = "1" * 64


def file_twice(_folder: Path, known: Document) -> None:
    known["loads"][1]["files"].append(known["loads"][1]["files"][0])


def position_moved(_folder: Path, known: Document) -> None:
    known["positions"]["0"] += 1


def load_left_out(_folder: Path, known: Document) -> None:
    del known["loads"][1]


def not_proven(_folder: Path, known: Document) -> None:
    known["verdict"].update(proven=False, problems=[])


def proven_in_words(_folder: Path, known: Document) -> None:
    known["verdict"]["proven"] = "no"


def more_in_the_verdict(_folder: Path, known: Document) -> None:
    known["verdict"]["guaranteed"] = True


FORGERIES: dict[str, tuple[Callable[[Path, Document], None], str]] = {
    "row changed": (file_changed, "holds other rows than the certificate says"),
    "file elsewhere": (file_elsewhere, "is not in the table's folder"),
    "file left out": (without_a_file, "has other rows than its ledger of partition 1"),
    "rows called compacted": (rows_called_compacted, "of load 3 says otherwise"),
    "term below zero": (ledger(1, loaded=6, compacted=-1), "does not account for each offset"),
    "offset unaccounted": (ledger(2, end=16), "does not account for each offset"),
    "load left out": (load_left_out, "load 3 does not follow the load before it"),
    "another chain": (another_digest, "the table has no manifest of load 2 with its digest"),
    "load called a compaction": (of_load(1, kind="compaction"), "compaction 2 changed rows"),
    "file removed that is not there": (of_load(2, removed=["x"]), "that do not count like that"),
    "file twice": (file_twice, "that do not count like that"),
    "position moved": (position_moved, "the positions are not where the loads end"),
    "rows": (field(rows=29), "rows or hash are not the sum of the files"),
    "hash": (field(hash="0" * 32), "rows or hash are not the sum of the files"),
    "another format": (field(format="x 2"), "has another format"),
    "verdict without its problems": (not_proven, "was not proven when"),
    "proven in words": (proven_in_words, "was not proven when"),
    "field of its own": (field(audited_by="me"), "has fields that its format does not have"),
    "more in the verdict": (more_in_the_verdict, "has fields that its format does not have"),
    "rows with a fraction": (field(rows=30.0), "is not written as its format says"),
}


@pytest.mark.parametrize(("forge", "said"), FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_certificate_is_refused(
    issued: tuple[Path, Document], forge: Callable[[Path, Document], None], said: str
) -> None:
    """Also where its own digest was computed anew."""
    folder, known = issued
    forge(folder, known)
    assert said in "\n".join(wrong(folder, known))


def test_certificate_changed_after_it_was_issued_is_refused(issued: tuple[Path, Document]) -> None:
    """Any field, also one that nothing else is compared with."""
    folder, known = issued
    known["issued_ms"] += 1
    assert "was changed after it was issued" in wrong(folder, known, sealed_again=False)[0]


def test_name_that_stands_twice_is_refused(issued: tuple[Path, Document]) -> None:
    """Readers may see the first."""
    folder, known = issued
    text = ottla.lake.certificate_text(known).replace('"rows": 30', '"rows": 99,\n "rows": 30', 1)
    blank = text.replace(known["sha256"], "0" * 64)
    text = text.replace(known["sha256"], sha256(blank.encode()).hexdigest())
    assert checker_says(folder, text) == ["the certificate is not written as its format says"]


def checker_says(folder: Path, text: str, earlier: str | None = None) -> list[str]:
    return list(checker.wrong(text, folder, earlier))


@pytest.mark.parametrize("sealed_again", [False, True])
def test_earlier_certificate_that_tells_nothing_is_refused(
    issued: tuple[Path, Document], sealed_again: bool
) -> None:
    folder, known = issued
    text = ottla.lake.certificate_text(known)
    assert checker_says(folder, text, text) == []
    assert "is none" in checker_says(folder, text, "{}")[0]
    assert "is none" in checker_says(folder, text, "[]")[0]
    fewer = {**known, "loads": known["loads"][:1]}
    if sealed_again:
        blank = ottla.lake.certificate_text({**fewer, "sha256": "0" * 64})
        fewer["sha256"] = sha256(blank.encode()).hexdigest()
    said = checker_says(folder, text, ottla.lake.certificate_text(fewer))
    assert said == [
        "the earlier certificate contradicts itself, or was changed after it was issued"
    ]


@pytest.mark.parametrize("changed", ["partition", "mapping"])
def test_delta_log_that_says_other_values_than_the_files_is_refused(
    tmp_path: Path, changed: str
) -> None:
    commit(open_table(str(tmp_path), "delta"), 5)
    text = ottla.lake.certificate_text(ottla.lake.certificate(str(tmp_path), bootstrap=None))
    (entry,) = (
        path
        for path in (tmp_path / "_delta_log").glob("*.json")
        if '"metaData"' in path.read_text()
    )
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "metaData" in line and changed == "partition":
            line["metaData"]["partitionColumns"] = ["topic"]
        elif "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
    entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    (said,) = checker_says(tmp_path, text)
    assert said.startswith("the table's log ")
