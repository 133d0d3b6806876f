"""Changelog tables with typed columns: Debezium's envelopes, dead letters, columns that change."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import Decode, Format, run_here
from ottla.lake.tables.opening import existing_table
from tests.system.lake.test_changelog import compact

MakeTopic = Callable[..., str]

ENVELOPES = Decode(
    value=Format("json", debezium=True), key=Format("json"), on_bad_record="dead-letter"
)
Record = tuple[bytes | None, bytes | None]


def key(number: int) -> bytes:
    return json.dumps({"schema": None, "payload": {"id": number}}).encode()


def envelope(op: str, before: Any, after: Any, ts_ms: int = 1) -> bytes:
    content = {"op": op, "before": before, "after": after, "source": {"ts_ms": ts_ms}}
    return json.dumps(content).encode()


def write(node: Node, topic: str, records: list[Record], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for record_key, value in records:
        producer.produce(topic, value, record_key, partition=partition)
    assert producer.flush(120) == 0


def keep(node: Node, topic: str, target: Path, **options: Any) -> ottla.lake.LoadResult:
    given = {"runner": run_here, "buckets": 3, **options}
    return ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, **given)


def rows(target: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in ottla.lake.files(str(target))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


def after_by_id(target: Path) -> dict[int, Any]:
    return {row["after"]["id"]: row["after"] for row in rows(target)}


def problems(target: Path, node: Node | None) -> list[str]:
    return ottla.lake.verify(str(target), bootstrap=node.bootstrap if node else None).problems


def envelopes(chance: random.Random, count: int, table: dict[int, Any]) -> list[Record]:
    """Changes of a database's table as a connector writes them: a tombstone behind each d."""
    records: list[Record] = []
    for _ in range(count):
        number = chance.randrange(12)
        before = table.get(number)
        if before is not None and chance.random() < 0.3:
            del table[number]
            records.append((key(number), envelope("d", before, None)))
            if chance.random() < 0.7:
                records.append((key(number), None))
            continue
        table[number] = {"id": number, "name": f"n{chance.randrange(1000)}"}
        op = "u" if before else chance.choice("cr")
        records.append((key(number), envelope(op, before, table[number])))
    return records


@pytest.mark.parametrize("kind", ["latest", "history"])
def test_envelopes_give_the_table_that_the_database_has(
    either: Node, make_topic: MakeTopic, tmp_path: Path, kind: str
) -> None:
    """c, u, d, r, with tombstones behind d and without, in commits of any size (P14)."""
    topic = make_topic(either, partitions=1)
    chance, table = random.Random(5), dict[int, Any]()
    decode: Decode | None = ENVELOPES
    for count in (40, 1, 30, 7):
        written = envelopes(chance, count, table)
        write(either, topic, written)
        done = keep(either, topic, tmp_path, decode=decode, kind=kind)
        assert done.rows == len(written)
        assert problems(tmp_path, either) == []
        assert problems(tmp_path, None) == []
        held = [row for row in rows(tmp_path) if row.get("valid_to") is None]
        assert {row["after"]["id"]: row["after"] for row in held} == table
        assert len(held) == len(table)
        decode = None  # Later runs go on as the table's manifest says.
    assert {row["op"] for row in rows(tmp_path)} <= {"c", "u", "r"}


def test_bad_records_are_dead_letters_and_their_keys_keep_their_rows(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """No JSON, no envelope, and envelopes of no row; each is counted and compared."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(key(1), envelope("c", None, {"id": 1})), (key(2), b"{not json")])
    keep(node, topic, tmp_path, decode=ENVELOPES)
    write(
        node,
        topic,
        [
            (key(1), b'{"id": 7}'),
            (key(1), envelope("t", None, None)),
            (key(3), envelope("c", None, {"id": 3})),
        ],
    )
    (ledger,) = keep(node, topic, tmp_path).ledgers
    assert (ledger.loaded, ledger.dead_letters, ledger.unexplained) == (1, 2, 0)
    assert sorted(after_by_id(tmp_path)) == [1, 3]
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.dead_letters) == ([], 3)

    letters = [file for one in existing_table(str(tmp_path)).history() for file in one.dead_letters]
    path = tmp_path / letters[0].path
    content = path.read_bytes()
    path.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    assert any(
        f"{letters[0].path} is not as it was written" in one for one in problems(tmp_path, node)
    )
    path.unlink()
    said = "\n".join(problems(tmp_path, None))
    assert f"{letters[0].path} is missing: 1 rows of dead letters" in said


def test_the_policy_fail_commits_nothing(node: Node, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(node, partitions=1)
    decode = Decode(value=Format("json", debezium=True))
    write(node, topic, [(key(1), envelope("c", None, {"id": 1}))])
    keep(node, topic, tmp_path, decode=decode)
    write(node, topic, [(key(1), envelope("t", None, None))])
    with pytest.raises(OttlaError, match="offset 1: an envelope with op t changes no row of a key"):
        keep(node, topic, tmp_path)
    assert sorted(after_by_id(tmp_path)) == [1]
    assert problems(tmp_path, node) == []


def test_rows_of_earlier_columns_are_decoded_again(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A new field: rows that are written again have its column, and nothing is lost."""
    topic = make_topic(node, partitions=1)
    decode = Decode(value=Format("json"), on_bad_record="dead-letter")
    write(node, topic, [(b"a", b'{"n": 1}'), (b"b", b'{"n": 2}')])
    keep(node, topic, tmp_path, decode=decode, buckets=1)
    write(node, topic, [(b"b", b'{"n": 5, "more": "x"}'), (b"c", None)])
    done = keep(node, topic, tmp_path, buckets=1)
    assert done.manifest is not None
    assert done.manifest.schema_changes
    found = {row["key"]: (row["n"], row["more"]) for row in rows(tmp_path)}
    assert found == {b"a": (1, None), b"b": (5, "x")}
    assert problems(tmp_path, node) == []


def test_columns_come_to_a_table_that_had_none(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b'{"n": 1}'), (b"b", b"no json")])
    keep(node, topic, tmp_path, buckets=1)
    write(node, topic, [(b"c", b'{"n": 3}')])
    keep(node, topic, tmp_path, buckets=1, decode=Decode(value=Format("json")))
    assert {row["key"]: row["n"] for row in rows(tmp_path)} == {b"a": 1, b"b": None, b"c": 3}
    assert problems(tmp_path, node) == []


def test_what_would_change_the_meaning_of_rows_is_refused(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    write(node, topic, [(key(1), envelope("c", None, {"id": 1}))])
    with pytest.raises(OttlaError, match="needs the keys and values of its rows"):
        keep(node, topic, tmp_path, decode=Decode(value=Format("json"), keep_raw=False))
    keep(node, topic, tmp_path)
    write(node, topic, [(key(1), envelope("d", {"id": 1}, None))])
    with pytest.raises(OttlaError, match="decides which records are deletions"):
        keep(node, topic, tmp_path, decode=ENVELOPES)


def test_a_typed_value_that_was_changed_is_found(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Though bytes, rows and hash of the raw columns are as the manifest says."""
    topic = make_topic(node, partitions=1)
    write(node, topic, [(b"a", b'{"n": 1}')])
    keep(node, topic, tmp_path, buckets=1, decode=Decode(value=Format("json")))
    (path,) = ottla.lake.files(str(tmp_path))
    read = pq.ParquetFile(path).read()
    at = read.schema.get_field_index("n")
    changed = read.set_column(at, read.schema.field(at), [[2]])
    pq.write_table(changed, path, store_schema=False)
    said = "\n".join(problems(tmp_path, None))
    assert "its column n is not what the records decode to at 0" in said


def test_letters_that_the_topic_compacted_away_are_no_contradiction(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Only letters that the replay still meets are compared; a forged one is found all the same."""
    topic = make_topic(node, partitions=1, cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    bad: Record = (b"a", b"no json")
    write(node, topic, [bad, (b"a", b'{"n": 1}'), bad, (b"b", b'{"n": 2}')])
    decode = Decode(value=Format("json"), on_bad_record="dead-letter")
    keep(node, topic, tmp_path, decode=decode, buckets=1)
    compact(node, topic)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.dead_letters, found.only_in_lake) == ([], 2, 1)
