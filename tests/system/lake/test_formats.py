"""Loads into Delta and Iceberg tables: exactly once, proven, and read back by other engines."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from rig.jars import SPARK_DELTA
from rig.java import NoJava, java_home
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import CommitConflict, Decode, Format, run_here
from ottla.lake.edges.pipeline import run as run_pipeline
from ottla.lake.edges.pipeline_file import parse
from ottla.lake.edges.planned_load import look
from ottla.lake.model.decode_spec import columns
from ottla.lake.model.layout import ROW_HASH
from ottla.lake.model.schema import ROW_SCHEMA
from tests.unit.lake.forked import exit_code_of

Produce = Callable[..., None]
MakeTopic = Callable[..., str]
BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


def values(target: Path) -> list[bytes]:
    """Values of all rows that count, sorted, as DuckDB reads them."""
    query = "select value from read_parquet(?) order by all"
    return [row[0] for row in duckdb.execute(query, [ottla.lake.files(str(target))]).fetchall()]


def numbered(first: int, last: int) -> list[bytes]:
    return sorted(b"v%d" % number for number in range(first, last))


def values_by_format(target: Path, kind: str) -> list[bytes]:
    """The same by the format's own reader."""
    if kind == "delta":
        query = "select value from read_parquet(?) order by all"
        files = DeltaTable(str(target)).file_uris()
        return [row[0] for row in duckdb.execute(query, [files]).fetchall()]
    found: list[bytes] = sorted(iceberg_rows(target)["value"].to_pylist())
    return found


def iceberg_rows(target: Path) -> pa.Table:
    """All rows of an Iceberg table, by pyiceberg."""
    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{target}/_ottla/catalog.db")
    try:
        return catalog.load_table(("ottla", target.name)).scan().to_arrow()
    finally:
        catalog.close()


def overwrite(target: Path, rows: pa.Table) -> None:
    """Write all rows of an Iceberg table anew, by pyiceberg."""
    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{target}/_ottla/catalog.db")
    try:
        catalog.load_table(("ottla", target.name)).overwrite(rows)
    finally:
        catalog.close()


@BOTH
def test_loads_on_spark_go_on_from_each_other(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: str
) -> None:
    """Later loads find the format out; each row is there once, and equals the topic's (P14)."""
    topic = make_topic(node, partitions=3)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, spark_session=spark
    )
    produce(node, topic, 0, 500)
    assert load(format=kind).rows == 500
    produce(node, topic, 500, 700)
    assert load().rows == 200
    assert load().rows == 0

    assert values(tmp_path) == values_by_format(tmp_path, kind) == numbered(0, 700)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.proven, found.loads, found.rows, found.compared) == (True, 2, 700, 700)


@BOTH
def test_loads_from_either_broker_are_proven(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: str
) -> None:
    topic = make_topic(either, partitions=2)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here
    )
    for turn in range(3):
        produce(either, topic, turn * 50, turn * 50 + 50)
        assert load(format=kind).rows == 50
    assert values_by_format(tmp_path, kind) == numbered(0, 150)
    found = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
    assert (found.problems, found.compared) == ([], 150)


STEPS = [
    "planned",
    "files written",
    "manifest stored",
    "manifest offered",
    "manifest written",
    "head written",
    "checkpoint written",
]
KILLED = """
import os, signal, sys
import ottla.lake
def kill(step):
    if step == sys.argv[5]:
        os.kill(os.getpid(), signal.SIGKILL)
ottla.lake.load(
    sys.argv[1], sys.argv[2], bootstrap=sys.argv[3], format=sys.argv[4],
    runner=ottla.lake.run_here, watch=ottla.lake.Observer(on_step=kill),
)
"""


@BOTH
def test_killed_at_any_step_it_neither_loses_nor_doubles(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: str
) -> None:
    """kill -9 after every step in turn, records arriving between; the sum is right (P12, P13)."""
    topic = make_topic(node, partitions=2)
    for turn, step in enumerate(STEPS):
        produce(node, topic, turn * 100, turn * 100 + 100)
        arguments = (topic, str(tmp_path), node.bootstrap, kind, step)
        assert exit_code_of(KILLED, *arguments) == -signal.SIGKILL, step
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)

    assert values_by_format(tmp_path, kind) == numbered(0, 100 * len(STEPS))
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.uncounted) == ([], [])
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))
    assert len(os.listdir(tmp_path / "_ottla/manifests")) == found.loads


@BOTH
@pytest.mark.parametrize("step", ["planned", "files written", "manifest offered"])
def test_loser_of_a_race_says_so_wherever_it_stands(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: str, step: str
) -> None:
    """The winner leaves the files of a load that runs; the loser removes its own (P13)."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 300)
    load = partial(
        ottla.lake.load,
        topic,
        str(tmp_path),
        bootstrap=node.bootstrap,
        runner=run_here,
        format=kind,
    )

    def overtaken(at: str) -> None:
        if at == step:
            assert load().removed == ()

    with pytest.raises(CommitConflict, match="another load committed version 1"):
        load(watch=ottla.lake.Observer(on_step=overtaken))
    assert values_by_format(tmp_path, kind) == numbered(0, 300)
    assert len(os.listdir(tmp_path / "data")) == len(ottla.lake.files(str(tmp_path)))
    assert len(os.listdir(tmp_path / "_ottla/manifests")) == 1


def test_rows_that_others_delete_are_named_by_their_offsets(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """After others compacted, too: the rows of their files are compared with the topic."""
    topic = make_topic(node, partitions=1)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    for turn in range(2):
        produce(node, topic, turn * 50, turn * 50 + 50)
        load(format="delta")
    DeltaTable(str(tmp_path)).optimize.compact()
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.compared, len(found.replaced)) == ([], 100, 1)

    DeltaTable(str(tmp_path)).delete('"offset" in (3, 77)')
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert f"{topic}-0: missing from the lake: 3, 77" in found.problems
    assert found.compared == 98


def typed_rows(target: Path, kind: str) -> list[tuple[Any, ...]]:
    """Offset and typed columns of each row, by the format's own reader."""
    if kind == "delta":
        files = [Path(path) for path in DeltaTable(str(target)).file_uris()]
        tables = [pq.read_table(path, partitioning=None) for path in files]
        rows = pa.concat_tables(tables, promote_options="default")
        names = [field.name for field in DeltaTable(str(target)).schema().fields]
        assert set(rows.column_names) <= set(names)
    else:
        rows = iceberg_rows(target)
    return sorted((row["offset"], row["id"], row.get("v")) for row in rows.to_pylist())


@BOTH
@pytest.mark.parametrize("keep_raw", [True, False], ids=["raw", "hashed"])
def test_typed_columns_are_columns_of_the_table(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: str, keep_raw: bool
) -> None:
    """Those of the first load and those that a later one adds; others may rewrite the files."""
    topic = make_topic(node, partitions=1)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    for values, wanted in (
        ([b'{"id":1}', b'{"id":2}', b"?"], {"id": "int64"}),
        ([b'{"id":3,"v":"a"}'], {"id": "int64", "v": "string"}),
    ):
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for value in values:
            producer.produce(topic, value, b"k")
        assert producer.flush(120) == 0
        decode = Decode(
            value=Format("json", columns(wanted)), on_bad_record="dead-letter", keep_raw=keep_raw
        )
        load(format=kind, decode=decode)

    assert typed_rows(tmp_path, kind) == [(0, 1, None), (1, 2, None), (3, 3, "a")]
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.dead_letters, found.compared) == ([], 1, 4)
    if kind == "delta":
        table = DeltaTable(str(tmp_path))
        table.optimize.compact()
        # Dead letters are in no log, and stay.
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
        assert (found.problems, len(found.replaced), found.dead_letters) == ([], 1, 1)


@BOTH
@pytest.mark.parametrize("keep_raw", [True, False], ids=["raw", "hashed"])
def test_typed_values_that_others_change_are_named(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: str, keep_raw: bool
) -> None:
    """The hash of a row does not have them; each load has a column that the one before has not."""
    topic = make_topic(node, partitions=1)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    for number, wanted in enumerate(({"n": "int64"}, {"n": "int64", "s": "string"})):
        value = b'{"n": %d, "s": "ok"}' % number
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for _ in range(5):
            producer.produce(topic, value)
        assert producer.flush(120) == 0
        decode = Decode(value=Format("json", columns(wanted)), keep_raw=keep_raw)
        load(format=kind, decode=decode)
    verify = partial(ottla.lake.verify, str(tmp_path))
    if kind == "delta":
        DeltaTable(str(tmp_path)).optimize.compact()
    else:
        overwrite(tmp_path, iceberg_rows(tmp_path))

    assert verify(bootstrap=node.bootstrap).problems == []
    problems = verify(bootstrap=None).problems
    assert bool(problems) is not keep_raw
    assert all("are not compared: the table keeps no keys" in problem for problem in problems)

    if kind == "delta":
        DeltaTable(str(tmp_path)).update(updates={"n": "77"}, predicate='"offset" = 3')
    else:
        found = iceberg_rows(tmp_path)
        changed = pc.if_else(pc.equal(found["offset"], 3), 77, found["n"])
        at = found.schema.get_field_index("n")
        overwrite(tmp_path, found.set_column(at, found.schema.field(at), changed))
    for bootstrap in (node.bootstrap, None) if keep_raw else (node.bootstrap,):
        (problem,) = verify(bootstrap=bootstrap).problems
        assert problem.endswith("its column n is not what the records decode to at 3")


@pytest.mark.parametrize("start", ["9999-12-31", "0:99", "7:0"])
def test_a_first_load_with_a_wrong_start_decides_no_format(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, start: str
) -> None:
    """The next one may choose another."""
    topic, target = make_topic(node, partitions=1), tmp_path / "t"
    produce(node, topic, 0, 5)
    load = partial(ottla.lake.load, topic, str(target), bootstrap=node.bootstrap, runner=run_here)
    with pytest.raises(OttlaError):
        load(format="iceberg", start=start)
    assert not target.exists()
    load(format="parquet")
    assert values(target) == numbered(0, 5)


@BOTH
def test_columns_that_a_format_cannot_hold_are_refused_before_a_file(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Any
) -> None:
    """With the column's name, for a new table as for one that has rows."""
    topic, target = make_topic(node, partitions=1), tmp_path / "t"
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    load = partial(ottla.lake.load, topic, str(target), bootstrap=node.bootstrap, runner=run_here)
    fields = columns({"n": "int64", "at": "list<time(ms)>"})
    wrong = Decode(value=Format("json", fields), on_bad_record="null")
    producer.produce(topic, b'{"n": 1}', partition=0)
    producer.flush(60)
    with pytest.raises(OttlaError, match=r"INVALID_REQUEST.*the column 'at' has no place"):
        load(format=kind, decode=wrong)
    assert not target.exists()
    load(format=kind, decode=Decode(value=Format("json", columns({"n": "int64"}))))
    before = sorted(target.rglob("*.parquet"))
    producer.produce(topic, b'{"n": 2}', partition=0)
    producer.flush(60)
    with pytest.raises(OttlaError, match=r"INVALID_REQUEST.*the column 'at' has no place"):
        load(decode=wrong)
    assert sorted(target.rglob("*.parquet")) == before
    load()
    assert len(values(target)) == 2


def test_wider_type_has_deltas_files_written_anew_unless_others_wrote_some(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By a commit of its own, which is proven; what another program has compacted is not ours."""
    topic = make_topic(node, partitions=1)
    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    kinds = ("int8", "int16", "int16", "int32")
    for number, kind in enumerate(kinds):
        if number == 3:
            DeltaTable(str(tmp_path)).optimize.compact()
        producer.produce(topic, b'{"id":%d}' % number, partition=0)
        assert producer.flush(120) == 0
        decode = Decode(value=Format("json", columns({"id": kind})))
        if number < 3:
            load(format="delta", decode=decode)
            continue
        with pytest.raises(OttlaError, match=r"each is written anew.*files of other programs"):
            load(decode=decode)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.loads, found.other_commits) == (
        [],
        3,
        3,
        {"compaction": 1},
    )
    assert [field.type.type for field in DeltaTable(str(tmp_path)).schema().fields][-1] == "short"
    load(decode=Decode(value=Format("json", columns({"id": "int16"}))))
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).compared == 4


SPARK = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[2])
for name, value in {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
table = spark.read.format("delta").load(sys.argv[1])
found = [bytes(row.value).decode() for row in table.where("offset >= 10").collect()]
print("rows", ",".join(sorted(found)))
spark.sql(f"OPTIMIZE delta.`{sys.argv[1]}`")
history = spark.sql(f"DESCRIBE HISTORY delta.`{sys.argv[1]}`").collect()
print("operations", ",".join(row.operation for row in history))
spark.stop()
"""


def test_spark_reads_and_compacts_a_delta_table(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Delta's own implementation: it reads what delta-rs committed; what it writes is proven."""
    if not SPARK_DELTA.ready():
        pytest.skip("the Delta jars are not there: run `make rig`")
    try:
        environment = {**os.environ, "JAVA_HOME": str(java_home())}
    except NoJava as reason:
        pytest.skip(str(reason))
    topic = make_topic(node, partitions=1)
    for turn in range(2):
        produce(node, topic, turn * 10, turn * 10 + 10)
        ottla.lake.load(
            topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here, format="delta"
        )
    jars = ",".join(map(str, SPARK_DELTA.folder.glob("*.jar")))
    ran = subprocess.run(
        [sys.executable, "-c", SPARK, str(tmp_path), jars],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows, operations = ran.stdout.strip().splitlines()[-2:]
    assert rows == "rows " + ",".join(sorted(f"v{number}" for number in range(10, 20)))
    assert operations.startswith("operations OPTIMIZE,")

    produce(node, topic, 20, 30)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.compared, len(found.replaced)) == ([], 30, 1)
    assert values_by_format(tmp_path, "delta") == numbered(0, 30)


def test_loads_go_into_a_delta_table_that_others_made(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Typed values stand in the columns of the same names, and the topic proves them."""
    topic = make_topic(node, partitions=1)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number in range(20):
        producer.produce(topic, b'{"id": %d}' % number, b"k")
    assert producer.flush(120) == 0
    kept = [one for one in ROW_SCHEMA if one.name not in ("key", "value", "headers")]
    own = [pa.field("id", pa.int64()), pa.field("note", pa.string())]
    theirs = pa.schema([*own, ROW_HASH, *kept])
    write_deltalake(str(tmp_path), pa.table([[-1], ["by hand"], *[[None]] * 6], schema=theirs))

    load = partial(ottla.lake.load, topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    decode = Decode(value=Format("json", columns({"id": "int64"})), keep_raw=False)
    with pytest.raises(OttlaError, match="--into-existing"):
        load(decode=decode)
    steps: list[str] = []
    other = Decode(value=Format("json", columns({"id": "string"})), keep_raw=False)
    with pytest.raises(OttlaError, match="its column id is long, and string in the load"):
        load(decode=other, into_existing=True, watch=ottla.lake.Observer(on_step=steps.append))
    assert steps == ["planned"]  # It is refused before its files are written.
    assert load(decode=decode, into_existing=True, end="0:10").rows == 10
    assert load().rows == 10  # The table is known by now.

    read = [pq.read_table(path, columns=["id"]) for path in DeltaTable(str(tmp_path)).file_uris()]
    assert sorted(pa.concat_tables(read).column("id").to_pylist()) == [-1, *range(20)]
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 20, 20)
    assert "1 file with 1 row of other programs" in found.remarks[0]


def test_pipeline_loads_into_a_table_that_others_made(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The key stays in the file: the plan and later runs take it as well."""
    topic = make_topic(node, partitions=1)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    producer.produce(topic, b"v", b"k")
    assert producer.flush(120) == 0
    table = tmp_path / "theirs"
    write_deltalake(str(table), pa.Table.from_pylist([{"topic": "theirs"}], schema=ROW_SCHEMA))
    text = (
        f'[source]\ntopic = "{topic}"\nbootstrap = "{node.bootstrap}"\n'
        f'[target]\ntable = "{table}"\n[spark]\nmaster = "here"\n'
    )
    with pytest.raises(OttlaError, match="--into-existing"):
        run_pipeline(parse(text, "p"))
    pipeline = parse(text.replace("[spark]", "into_existing = true\n[spark]"), "p")
    assert look(pipeline).offsets == 1
    assert [run_pipeline(pipeline).rows for _ in range(2)] == [1, 0]
    changelog = replace(pipeline, kind="latest", table=str(tmp_path / "new"))
    with pytest.raises(OttlaError, match=r"into_existing in \[target\] is for kind = rows only"):
        run_pipeline(changelog)
