"""Loads with typed columns and dead letters, from Ottla and Apache Kafka."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node
from rig.registry import RigRegistry, schema_registry

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import Decode, Format, SchemaRules, run_here
from ottla.lake.model.decode_spec import columns

MakeTopic = Callable[..., str]


@pytest.fixture
def registry() -> Iterator[RigRegistry]:
    with schema_registry() as running:
        yield running


def send(node: Node, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, value, **{"partition": 0, **more})
    assert producer.flush(120) == 0


def load(node: Node, topic: str, target: Path, **more: Any) -> Any:
    return ottla.lake.load(topic, str(target), bootstrap=node.bootstrap, runner=run_here, **more)


def rows(target: Path) -> list[dict[str, Any]]:
    """All rows, in order of offset, with the union of all columns."""
    paths = ottla.lake.files(str(target))
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    return pa.concat_tables(tables, promote_options="permissive").sort_by("offset").to_pylist()


def verified(node: Node, target: Path) -> Any:
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
    assert found.problems == []
    return found


def test_values_become_columns_and_bad_ones_dead_letters(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The ledger counts them, verify proves both, and the letters say what was wrong."""
    topic = make_topic(either, partitions=1)
    send(
        either,
        topic,
        [b'{"id":1,"v":"a"}', b"no json", None, b'{"id":"x"}', b'{"id":2,"z":1}'],
        key=b"k",
    )
    value = Format("json", columns({"id": "int64", "v": "string"}))
    with pytest.raises(OttlaError, match=rf"{topic}-0 offset 1 can't be decoded") as caught:
        load(either, topic, tmp_path, decode=Decode(value=value))
    assert caught.value.code is ErrorCode.INVALID_RECORD
    decode = Decode(value=value, on_bad_record="dead-letter")
    done = load(either, topic, tmp_path, decode=decode)
    (ledger,) = done.ledgers
    assert (ledger.loaded, ledger.dead_letters, ledger.unexplained) == (3, 2, 0)
    assert [(row["offset"], row["id"], row["v"], row["value"]) for row in rows(tmp_path)] == [
        (0, 1, "a", b'{"id":1,"v":"a"}'),
        (2, None, None, None),
        (4, 2, None, b'{"id":2,"z":1}'),
    ]
    (dead,) = done.manifest.dead_letters
    letters = pq.read_table(tmp_path / dead.path, partitioning=None).to_pylist()
    assert [(one["offset"], one["stage"], one["value"], one["key"]) for one in letters] == [
        (1, "decode.value", b"no json", b"k"),
        (3, "schema", b'{"id":"x"}', b"k"),
    ]
    assert letters[1]["error"] == "id: 'x' is no integer"
    assert letters[0]["timestamp_ms"] == letters[0]["timestamp"].timestamp() * 1000
    found = verified(either, tmp_path)
    assert (found.compared, found.dead_letters) == (5, 2)
    # A load without a declaration goes on with it.
    send(either, topic, [b'{"id":3}', b"{"])
    again = load(either, topic, tmp_path)
    assert (again.rows, again.ledgers[0].dead_letters) == (1, 1)
    assert rows(tmp_path)[-1]["id"] == 3
    verified(either, tmp_path)


def test_nulls_stand_where_a_value_does_not_fit_if_that_is_wanted(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The record stays among the rows, with what could be decoded of it."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [b'{"id":"x","v":"a"}', b"{"])
    decode = Decode(
        value=Format("json", columns({"id": "int64", "v": "string"})), on_bad_record="null"
    )
    assert load(node, topic, tmp_path, decode=decode).rows == 2
    assert [(row["id"], row["v"]) for row in rows(tmp_path)] == [(None, "a"), (None, None)]
    verified(node, tmp_path)


def test_raw_columns_may_be_left_out_and_the_rows_are_proven_still(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A hash of each raw row takes their place; an altered typed column is named."""
    topic = make_topic(node, partitions=1)
    send(
        node,
        topic,
        [b'{"id":%d}' % number for number in range(100)],
        key=b"k",
        headers=[("h", b"x")],
    )
    decode = Decode(
        value=Format("json", columns({"id": "int64"})), key=Format("string"), keep_raw=False
    )
    done = load(node, topic, tmp_path, decode=decode)
    first = rows(tmp_path)[7]
    assert list(first) == [
        "row_hash",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key_decoded",
        "id",
    ]
    assert (first["id"], first["key_decoded"]) == (7, "k")
    assert verified(node, tmp_path).compared == 100
    (file,) = done.manifest.files
    _alter(tmp_path / file.path, "id", 7, 8)
    problems = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).problems
    assert any("is not as it was written" in one for one in problems)
    assert f"{file.path}: its column id is not what the records decode to at 7" in problems


def test_an_altered_typed_column_is_named_where_raw_ones_are_kept(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Its raw neighbours are decoded again; NaN and nested values are compared as well."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [b'{"id":%d,"o":{"l":[1,{"x":null}]}}' % number for number in range(10)])
    declared = {"id": "int64", "o": "struct<l: json>"}
    done = load(node, topic, tmp_path, decode=Decode(value=Format("json", columns(declared))))
    verified(node, tmp_path)
    (file,) = done.manifest.files
    _alter(tmp_path / file.path, "id", 3, None)
    problems = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).problems
    assert f"{file.path}: its column id is not what the records decode to at 3" in problems


def _alter(path: Path, name: str, row: int, value: Any) -> None:
    table = pq.read_table(path, partitioning=None)
    values = table.column(name).to_pylist()
    values[row] = value
    at = table.schema.get_field_index(name)
    kind = table.schema.field(at).type
    pq.write_table(
        table.set_column(at, table.schema.field(at), pa.array(values, kind)),
        path,
        store_schema=False,
    )


def test_columns_follow_from_a_sample_and_then_from_new_fields(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Each change is on record with its first offset; what a rule rejects is a bad record."""
    topic = make_topic(node, partitions=2)
    send(node, topic, [b'{"id":1,"offset":5,"o":{"a":"x"}}', b'{"id":2}'])
    send(node, topic, [b'{"id":3}'], partition=1)
    done = load(node, topic, tmp_path, decode=Decode(value=Format("json")))
    names = [one["name"] for one in done.manifest.table_schema.columns]
    assert sorted(names) == ["id", "o", "value_offset"]
    assert done.manifest.schema_changes == ()
    send(node, topic, [b'{"id":4}', b'{"id":5,"tag":"t","o":{"b":1.5}}', b'{"id":6,"tag":null}'])
    send(node, topic, [b'{"tag":"u"}'], partition=1)
    more = load(node, topic, tmp_path)
    assert more.manifest.table_schema.number == 2
    assert {one.what: dict(one.offsets) for one in more.manifest.schema_changes} == {
        "add tag string": {0: 3, 1: 1},
        "add o.b float64": {0: 3},
    }
    assert len(list((tmp_path / "data").iterdir())) == len(ottla.lake.files(str(tmp_path)))
    by_id = {row["id"]: row for row in rows(tmp_path)}
    assert (by_id[5]["tag"], by_id[5]["o"], by_id[1]["tag"]) == ("t", {"a": None, "b": 1.5}, None)
    verified(node, tmp_path)
    send(node, topic, [b'{"id":7,"new":1}'])
    rules = SchemaRules(add="reject", rename=(("label", "tag"),))
    last = load(
        node,
        topic,
        tmp_path,
        decode=Decode(value=Format("json"), rules=rules, on_bad_record="dead-letter"),
    )
    assert [one.what for one in last.manifest.schema_changes] == ["rename tag to label"]
    assert last.manifest.ledgers[0].dead_letters == 1
    verified(node, tmp_path)
    send(node, topic, [b"{}"])
    with pytest.raises(OttlaError, match="the column id is int64 in the table"):
        load(node, topic, tmp_path, decode=Decode(value=Format("json", columns({"id": "string"}))))


def test_records_of_a_registry_evolve_the_table(
    node: Node, make_topic: MakeTopic, tmp_path: Path, registry: RigRegistry
) -> None:
    """A second version of the schema adds its field in the middle of a load."""
    topic = make_topic(node, partitions=1)
    fields: list[dict[str, Any]] = [{"name": "id", "type": "int"}]
    first = {"type": "record", "name": "u", "fields": fields}
    at = {
        "name": "at",
        "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "default": None,
    }
    second = {**first, "fields": [{"name": "id", "type": "long"}, at]}
    one, two = (registry.register(f"{topic}-value", json.dumps(each)) for each in (first, second))
    send(node, topic, [_framed(one, first, {"id": 1})])
    decode = Decode(
        value=Format("avro"), registry=registry.url, on_bad_record="dead-letter", sample=1
    )
    assert load(node, topic, tmp_path, decode=decode).manifest.table_schema.number == 1
    send(
        node,
        topic,
        [
            _framed(two, second, {"id": 2, "at": None}),
            _framed(77, first, {"id": 3}),
            _framed(two, second, {"id": 2**40, "at": 1000}),
        ],
    )
    done = load(node, topic, tmp_path)
    assert {one.what: dict(one.offsets) for one in done.manifest.schema_changes} == {
        "add at timestamp(ms)": {0: 1},
        "widen id to int64": {0: 3},
    }
    found = rows(tmp_path)
    assert [(row["id"], row["at"] and row["at"].timestamp()) for row in found] == [
        (1, None),
        (2, None),
        (2**40, 1.0),
    ]
    (dead,) = done.manifest.dead_letters
    (letter,) = pq.read_table(tmp_path / dead.path, partitioning=None).to_pylist()
    assert (letter["stage"], letter["schema_id"]) == ("schema", 77)
    verified(node, tmp_path)
    registry.fail_next, registry.fail_status = 1_000, 401
    send(node, topic, [_framed(one, first, {"id": 9})])
    with pytest.raises(OttlaError, match="401"):
        load(node, topic, tmp_path)


def _framed(number: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def test_a_timestamp_that_does_not_fit_may_be_a_dead_letter(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """With or without typed columns; the letter keeps the timestamp."""
    topic = make_topic(either, partitions=1, message_timestamp_after_max_ms=str(2**63 - 1))
    for timestamp in (1000, 2**62, 3000):
        send(either, topic, [b"{}"], timestamp=timestamp)
    done = load(either, topic, tmp_path, on_bad_timestamp="dead-letter")
    assert (done.rows, done.ledgers[0].dead_letters) == (2, 1)
    (dead,) = done.manifest.dead_letters
    (letter,) = pq.read_table(tmp_path / dead.path, partitioning=None).to_pylist()
    assert (letter["stage"], letter["timestamp_ms"], letter["timestamp"]) == (
        "timestamp",
        2**62,
        None,
    )
    assert verified(either, tmp_path).compared == 3


def test_a_load_that_fails_leaves_no_dead_letters_behind(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Its files go; those of a killed load go with the next one."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [b"x"])
    decode = Decode(value=Format("json"), on_bad_record="dead-letter")

    class Killed(BaseException):
        pass

    def kill(step: str) -> None:
        if step == "manifest offered":
            raise Killed

    with pytest.raises(Killed):
        load(node, topic, tmp_path, decode=decode, watch=ottla.lake.Observer(on_step=kill))
    load(node, topic, tmp_path, decode=decode)
    send(node, topic, [b"y"])
    load(node, topic, tmp_path)
    assert len(list((tmp_path / "_dead_letters").iterdir())) == 2
    assert verified(node, tmp_path).uncounted == []


def test_spark_decodes_and_reads_what_it_decoded(
    node: Node, make_topic: MakeTopic, tmp_path: Path, spark: Any
) -> None:
    """Tasks on Spark's workers; typed columns as Spark has them."""
    topic = make_topic(node, partitions=2)
    for partition in (0, 1):
        send(
            node,
            topic,
            [
                b'{"id":%d,"d":"1.50","t":"2024-01-01T00:00:00Z","l":[{"a":1}]}' % n
                for n in range(50)
            ]
            + [b"bad"],
            partition=partition,
        )
    declared = {
        "id": "int64",
        "d": "decimal(5,2)",
        "t": "timestamp(ms)",
        "l": "list<struct<a: int32>>",
    }
    done = ottla.lake.load(
        topic,
        str(tmp_path),
        bootstrap=node.bootstrap,
        spark_session=spark,
        decode=Decode(value=Format("json", columns(declared)), on_bad_record="dead-letter"),
    )
    assert (done.rows, sum(one.dead_letters for one in done.ledgers)) == (100, 2)
    frame = spark.read.parquet(*ottla.lake.files(str(tmp_path)))
    found = frame.selectExpr(
        "sum(id)", "sum(d)", "min(unix_timestamp(t))", "sum(l[0].a)"
    ).collect()[0]
    assert [str(one) for one in found] == ["2450", "150.00", "1704067200", "100"]
    verified(node, tmp_path)
