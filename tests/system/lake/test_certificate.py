"""A certificate holds for the table that it was issued for, and for no other."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rig.nodes import Node
from rig.paths import ROOT

from ottla.lake import certificate, certificate_text, load, run_here

CHECKER = ROOT / "examples" / "check_certificate.py"


@pytest.fixture
def table(node: Node, make_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path):
    """A table of two loads, and what makes a third."""
    topic = make_topic(node)
    produce(node, topic, 0, 200)
    target = tmp_path / "table"
    load(topic, str(target), bootstrap=node.bootstrap, runner=run_here)
    produce(node, topic, 200, 300)
    load(topic, str(target), bootstrap=node.bootstrap, runner=run_here)

    def more() -> None:
        produce(node, topic, 300, 350)
        load(topic, str(target), bootstrap=node.bootstrap, runner=run_here)

    return target, more


def _check(folder: Path, document: dict[str, Any], *more: str) -> tuple[int, str]:
    path = folder.parent / "certificate.json"
    path.write_text(certificate_text(document))
    command = [sys.executable, str(CHECKER), str(path), str(folder), *more]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def _sealed_again(document: dict[str, Any]) -> dict[str, Any]:
    blank = {**document, "sha256": "0" * 64}
    return {**blank, "sha256": hashlib.sha256(certificate_text(blank).encode()).hexdigest()}


def test_a_certificate_holds_for_its_table(node: Node, table: Any) -> None:
    """A program without ottla come to the same rows, hash, sums and chain."""
    folder, more = table
    first = certificate(str(folder), bootstrap=node.bootstrap)
    more()
    second = certificate(str(folder), bootstrap=None)
    earlier = folder.parent / "earlier.json"
    earlier.write_text(certificate_text(first))

    assert (first["rows"], second["rows"]) == (300, 350)
    assert first["verdict"]["compared"] == 300
    for known, words in ((first, ()), (second, ("--earlier", str(earlier)))):
        code, output = _check(folder, known, *words)
        assert code == 0, output
        assert output.startswith("the certificate holds; not checked here:")


def _change_a_row(folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    """In file and certificate, digest and size included: only the row's hash differs."""
    file = document["loads"][0]["files"][0]
    path = folder / file["path"]
    rows = pq.ParquetFile(path).read()
    values = [b"forged", *rows.column("value").to_pylist()[1:]]
    column = rows.schema.get_field_index("value")
    pq.write_table(rows.set_column(column, rows.schema.field(column), [values]), path)
    file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    file["size_bytes"] = path.stat().st_size
    return document


def _leave_out_a_load(_folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    del document["loads"][0]
    return document


def _move_a_position(_folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    document["positions"]["0"] += 1
    return document


def _leave_an_offset_unaccounted(_folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    document["loads"][1]["ledgers"][0]["end"] += 1
    document["positions"]["0"] += 1
    return document


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (_change_a_row, "holds other rows than the certificate says"),
        (_leave_out_a_load, "load 2 does not follow the load before it"),
        (_move_a_position, "the positions are not where the loads end"),
        (_leave_an_offset_unaccounted, "load 2 does not account for each offset"),
    ],
)
def test_a_forged_certificate_is_found(
    table: Any, forge: Callable[[Path, dict[str, Any]], dict[str, Any]], said: str
) -> None:
    """Also where its digest was computed anew."""
    folder, _ = table
    document = certificate(str(folder), bootstrap=None)
    forged = _sealed_again(forge(folder, json.loads(certificate_text(document))))
    code, output = _check(folder, forged)
    assert code == 1
    assert said in output


def test_a_history_written_anew_contradicts_an_earlier_certificate(
    table: Any, node: Node, make_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    """A table of the same topic that was loaded anew has another chain."""
    folder, _ = table
    earlier = folder.parent / "earlier.json"
    first = certificate(str(folder), bootstrap=None)
    earlier.write_text(certificate_text(first))
    again = folder.parent / "again"
    load(first["topic"], str(again), bootstrap=node.bootstrap, runner=run_here)
    code, output = _check(again, certificate(str(again), bootstrap=None), "--earlier", str(earlier))
    assert code == 1
    assert "not the one that the earlier certificate tells" in output


def test_a_certificate_of_a_damaged_table_says_so(table: Any) -> None:
    """It is issued, and is not proven."""
    folder, _ = table
    next((folder / "data").glob("*.parquet")).unlink()
    document = certificate(str(folder), bootstrap=None)
    assert document["verdict"]["proven"] is False
    code, output = _check(folder, document)
    assert code == 1
    assert "is missing" in output
