"""A deletion that compaction removed before a changelog table read it is found, and mended."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.lake.model.plan import RecordsLost
from tests.system.lake.test_changelog import compact


def write(node: Node, topic: str, *records: tuple[bytes, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(120) == 0


def keep(node: Node, topic: str, target: Path, **more: Any) -> dict[bytes, bytes]:
    """Bring the table up to date; its rows."""
    ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, master="here", **more)
    rows = ottla.lake.table(str(target)).to_arrow().to_pylist()
    return {row["key"]: row["value"] for row in rows}


def compacted(make_topic: Any, node: Node) -> str:
    return str(
        make_topic(
            node, partitions=1, cleanup_policy="compact", min_cleanable_dirty_ratio="0",
            delete_retention_ms="0",
        )
    )  # fmt: skip


def test_a_run_after_the_deletion_was_compacted_fails_and_reconciles(
    node: Node, make_topic: Any, tmp_path: Path
) -> None:
    """The first pass removes the record, the second one its tombstone."""
    topic = compacted(make_topic, node)
    write(node, topic, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    assert keep(node, topic, tmp_path) == {b"a": b"1", b"b": b"1", b"c": b"1"}
    write(node, topic, (b"a", None), (b"b", b"2"))
    compact(node, topic)
    # Each pass has something to do.
    write(node, topic, (b"b", b"3"))
    compact(node, topic)

    with pytest.raises(RecordsLost, match=f"{topic}-0: .* compacted.*--reconcile"):
        keep(node, topic, tmp_path)
    rows = {b"b": b"3", b"c": b"1"}
    assert keep(node, topic, tmp_path, reconcile=True) == rows
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven
    # It goes on as before, and a fresh table is the same.
    write(node, topic, (b"d", b"1"))
    assert keep(node, topic, tmp_path) == {**rows, b"d": b"1"}
    assert keep(node, topic, tmp_path / "fresh") == {**rows, b"d": b"1"}


def test_such_rows_may_be_kept(node: Node, make_topic: Any, tmp_path: Path) -> None:
    """As other losses, by the operator's word."""
    topic = compacted(make_topic, node)
    write(node, topic, (b"a", b"1"), (b"b", b"1"))
    keep(node, topic, tmp_path)
    write(node, topic, (b"a", None), (b"b", b"2"))
    compact(node, topic)
    write(node, topic, (b"b", b"3"))
    compact(node, topic)
    assert keep(node, topic, tmp_path, accept_loss=True) == {b"a": b"1", b"b": b"3"}


def test_reconciling_a_sound_table_changes_no_row(
    node: Node, make_topic: Any, tmp_path: Path
) -> None:
    """Rows that retention has taken from the log stay."""
    topic = make_topic(node, partitions=2)
    write(node, topic, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None))
    before = keep(node, topic, tmp_path)
    assert keep(node, topic, tmp_path, reconcile=True) == before == {b"a": b"2"}
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven
