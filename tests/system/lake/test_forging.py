"""Rows that were made to have the hash of others: the topic shows them, sums alone do not."""

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.lake.model import row_hash
from ottla.lake.model.manifest import unseal
from ottla.lake.model.row_hash import bytes_sums
from tests.system.lake.forging import forged
from tests.unit.lake.tables import forge

TRIES = 1000


def value(number: int, amount: int = 100) -> bytes:
    """An amount in eight bytes, and a text."""
    return struct.pack("<Q", amount) + f"{number:056d}".encode()


def with_values(path: Path, change: Any) -> None:
    """Write the file anew with other values."""
    rows = pq.ParquetFile(path).read()
    at = rows.schema.get_field_index("value")
    values = pa.array([change(one) for one in rows["value"].to_pylist()], pa.binary())
    pq.write_table(rows.set_column(at, rows.schema.field(at), values), path)


def sums(content: bytes) -> tuple[int, int]:
    found = bytes_sums(np.frombuffer(content, np.uint8), np.array([0, len(content)], np.int64))
    return int(found[0][0]), int(found[1][0])


@pytest.mark.parametrize("form", ["in C", "numpy"])
def test_no_forged_value_passes_beside_the_topic(
    node: Node, make_topic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """1,000 amounts, each with the sums of the true one, file, manifest and head sealed again."""
    if form == "in C" and not row_hash._in_c:
        pytest.skip("no loops in C here: no C compiler, or `make venv` has not run")
    monkeypatch.setattr(row_hash, "_in_c", form == "in C")
    topic = make_topic(node)
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(TRIES):
        producer.produce(topic, value(number))
    assert producer.flush(120) == 0
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, master="here")
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven

    def change(one: bytes) -> bytes:
        other = forged(one, struct.pack("<Q", 999_999) + one[8:])
        assert sums(other) == sums(one)
        assert other != one
        return other

    (manifest,) = (tmp_path / "_ottla" / "manifests").iterdir()

    def describe(fields: dict[str, Any]) -> None:
        for file in fields["files"]:
            path = tmp_path / file["path"]
            with_values(path, change)
            content = path.read_bytes()
            file.update(size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    forge(manifest, describe)
    for head in (tmp_path / "_ottla" / "heads").iterdir():
        forge(head, lambda fields: name_newest(fields, manifest))

    # What the sums in a manifest or a certificate withstand are accidents.
    assert ottla.lake.verify(str(tmp_path), bootstrap=None).problems == []
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.compared, found.proven) == (TRIES, False)
    assert sum(altered(one) for one in found.problems) == TRIES


def altered(problem: str) -> int:
    """How many offsets a line of the report calls altered."""
    _, _, offsets = problem.partition("altered in the lake: ")
    named, _, more = offsets.partition(" and ")
    return len(named.split(", ")) * bool(named) + int(more.removesuffix(" more") or 0)


def name_newest(fields: dict[str, Any], manifest: Path) -> None:
    """Let a head name the manifest as it is now."""
    if fields["version"]:
        fields["manifest"] = unseal(manifest.read_bytes())[1]
