"""Verification finds every way in which a table can differ from its topic, by offset."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.lake import run_here
from ottla.lake.model.manifest import next_manifest, unseal
from ottla.lake.tables.opening import existing_table
from tests.unit.lake.tables import forge, manifest_path

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


@pytest.fixture
def loaded(node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path) -> tuple[Path, str]:
    """A proven table of 200 rows in two partitions, and its cluster's address."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 200)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven
    return tmp_path, node.bootstrap


def problems(table: tuple[Path, str]) -> str:
    found = ottla.lake.verify(str(table[0]), bootstrap=table[1])
    assert not found.proven
    return "\n".join(found.problems)


def rewrite(path: str, change: Callable[[pa.Table], pa.Table]) -> None:
    rows = change(pq.read_table(path))
    pq.write_table(rows, path)


def test_removed_file_is_found(loaded: tuple[Path, str]) -> None:
    Path(ottla.lake.files(str(loaded[0]))[0]).unlink()

    told = problems(loaded)
    assert "is missing" in told
    assert "missing from the lake: 0, 1, 2" in told


def test_doubled_rows_are_found(loaded: tuple[Path, str]) -> None:
    rewrite(
        ottla.lake.files(str(loaded[0]))[0],
        lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
    )

    told = problems(loaded)
    assert "holds an offset twice" in told
    assert "doubled in the lake: 0" in told


def test_one_changed_byte_is_found_and_its_offset_named(loaded: tuple[Path, str]) -> None:
    def change(rows: pa.Table) -> pa.Table:
        values = rows["value"].to_pylist()
        values[3] = values[3][:-1] + b"?"
        return rows.set_column(1, rows.schema.field("value"), pa.array(values, pa.binary()))

    rewrite(ottla.lake.files(str(loaded[0]))[0], change)

    assert "altered in the lake: 3" in problems(loaded)


def test_row_moved_between_partitions_is_found(loaded: tuple[Path, str]) -> None:
    def move(rows: pa.Table) -> pa.Table:
        partitions = rows["partition"].to_pylist()
        partitions[5] = 1 - partitions[5]
        return rows.set_column(4, rows.schema.field("partition"), pa.array(partitions, pa.int32()))

    rewrite(ottla.lake.files(str(loaded[0]))[0], move)

    assert "holds rows of another partition" in problems(loaded)


def test_file_that_is_no_parquet_is_told(loaded: tuple[Path, str]) -> None:
    Path(ottla.lake.files(str(loaded[0]))[0]).write_bytes(b"rubbish")

    assert "can't be read" in problems(loaded)


def test_files_alone_can_be_checked(loaded: tuple[Path, str]) -> None:
    """Without the topic the files are still held against their manifests."""
    found = ottla.lake.verify(str(loaded[0]), bootstrap=None)
    assert (found.proven, found.rows, found.compared) == (True, 200, 0)


def test_load_doubled_by_a_forged_manifest_is_found(loaded: tuple[Path, str]) -> None:
    """A second manifest that names copies of the same rows does not pass."""
    table = existing_table(str(loaded[0]))
    before, digest = table.latest()
    assert before is not None
    files = []
    for file in before.files:
        copy = file.path.replace(".parquet", "-copy.parquet")
        shutil.copy(table.store.root / file.path, table.store.root / copy)
        files.append(replace(file, path=copy))
    object.__setattr__(before, "positions", {})
    forged = next_manifest(
        before,
        digest,
        load_id="f" * 32,
        topic=before.topic,
        topic_id=before.topic_id,
        cluster_id=before.cluster_id,
        created_ms=0,
        files=files,
        ledgers=before.ledgers,
    )
    table.commit(forged)

    assert "starts at offset 0 of partition 0, but the loads before it end at" in problems(loaded)


@pytest.mark.parametrize("term", ["compacted", "absent", "deleted", "control"])
def test_a_ledger_that_counts_aborted_records_as_others_is_found(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, term: str
) -> None:
    """In a chain that was forged whole, of a table whose rows are those of the topic."""
    topic = make_topic(node, partitions=1)
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, b"aborted %d" % number)
    producer.flush()
    producer.abort_transaction()
    produce(node, topic, 0, 10)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    manifest = manifest_path(tmp_path, 1)
    forge(
        manifest,
        lambda m: m["ledgers"][0].update({"aborted": 3, term: m["ledgers"][0][term] + 2}),
    )
    _, digest = unseal(manifest.read_bytes())
    for head in (tmp_path / "_ottla/heads").iterdir():
        forge(head, lambda h: h.update(manifest=digest if h["version"] else None))
    assert problems((tmp_path, node.bootstrap)) == (
        f"{topic}-0: the topic has 5 records of aborted transactions between the offsets 0 and 16, "
        "and the ledgers of the loads count 3"
    )


def test_a_file_that_cannot_be_read_holds_no_rows_that_are_only_in_the_lake(
    loaded: tuple[Path, str],
) -> None:
    """Nothing is known of its rows; the topic has them all."""
    path = Path(ottla.lake.files(str(loaded[0]))[0])
    path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 4))
    found = ottla.lake.verify(str(loaded[0]), bootstrap=loaded[1])
    assert not found.proven
    assert found.only_in_lake == 0
    assert 0 < found.compared < 200
