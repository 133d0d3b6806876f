"""Rows are kept apart by event time, in three formats, with the same proof."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from deltalake import DeltaTable
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli.lake.state import files
from ottla.lake import run_here
from ottla.lake.edges.status import status
from ottla.lake.model.decode_spec import columns
from ottla.lake.model.event_times import By, EventSettings
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table
from ottla.lake.write.dead_letters import letters_of_table
from tests.unit.lake.logged.readers import iceberg

MakeTopic = Callable[..., str]
HOUR = 3_600_000
# 2026-03-01T00:00Z.
DAY_0 = 1_772_323_200_000


def send(node: Node, topic: str, times: list[int], *, partition: int = 0, first: int = 0) -> None:
    """A record at each of these times, in this order."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number, at_ms in enumerate(times, first):
        producer.produce(topic, b"v%d" % number, b"k", partition, timestamp=at_ms)
    assert producer.flush(120) == 0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def load(node: Node, topic: str, target: Path, events: EventSettings, **more: Any) -> Any:
    return ottla.lake.load(
        topic, str(target), bootstrap=node.bootstrap, runner=run_here, **words(events), **more
    )


def words(events: EventSettings) -> dict[str, Any]:
    """The options of a load."""
    return {
        "partition_by": events.partition_by,
        "event_time": events.column,
        "allowed_lateness": events.lateness_ms,
        "idle_after": events.idle_ms,
        "late_rows": events.late_rows,
    }


def rows_of(target: Path) -> list[tuple[Any, ...]]:
    names = ("partition", "offset", "timestamp", "key", "value")
    rows = []
    for path in ottla.lake.files(str(target)):
        with pq.ParquetFile(path) as file:
            columns = file.read().to_pydict()
        rows += list(zip(*(columns[name] for name in names), strict=True))
    return sorted(rows)


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_partitioned_table_has_the_rows_of_one_that_is_not(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format
) -> None:
    """Times jump back and forth over three days: each file has one day, and the proof holds."""
    topic = make_topic(node, partitions=2)
    times = [DAY_0 + (number * 17 % 72) * HOUR for number in range(200)]
    for partition in (0, 1):
        send(node, topic, times, partition=partition)
    plain, by_day = tmp_path / "plain", tmp_path / "day"
    ottla.lake.load(topic, str(plain), bootstrap=node.bootstrap, runner=run_here)
    load(node, topic, by_day, EventSettings("day"), format=kind)
    send(node, topic, times[:50], first=200)
    ottla.lake.load(topic, str(plain), bootstrap=node.bootstrap, runner=run_here)
    done = load(node, topic, by_day, EventSettings())  # The table knows.

    assert rows_of(by_day) == rows_of(plain)
    found = ottla.lake.verify(str(by_day), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 450, 450)
    assert done.manifest.total_hash == ottla.lake.verify(str(plain), bootstrap=None).hash
    folders = sorted(path.name for path in (by_day / "data").iterdir())
    assert folders == ["event_day=2026-03-01", "event_day=2026-03-02", "event_day=2026-03-03"]

    before = len(ottla.lake.files(str(by_day)))
    compacted = ottla.lake.compact(str(by_day), master="here")
    assert (before, compacted.removed, compacted.added) == (9, 6, 3)
    assert rows_of(by_day) == rows_of(plain)
    found = ottla.lake.verify(str(by_day), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 450, 450)
    assert found.uncounted == []


def test_engines_read_the_files_of_a_day_by_the_logs_of_delta_and_iceberg(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Delta has a column for it, Iceberg a transform of the timestamp; null has its own."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0 + number * HOUR for number in range(72)])
    for kind in ("delta", "iceberg"):
        load(node, topic, tmp_path / kind, EventSettings("day"), format=kind)
    second = "event_day=2026-03-02"

    delta = DeltaTable(str(tmp_path / "delta"))
    (path,) = delta.file_uris(file_pruning_predicate="event_day = '2026-03-02'")
    assert second in path
    assert delta.metadata().partition_columns == ["event_day"]
    read = duckdb.sql(f"select count(*) from '{path}'")
    assert read.fetchall() == [(24,)]

    table = iceberg(tmp_path / "iceberg")
    assert str(table.spec().fields[0]) == "1000: event_day: day(7)"
    wanted = "timestamp >= '2026-03-02T00:00:00+00:00' and timestamp < '2026-03-03T00:00:00+00:00'"
    planned = [task.file.file_path for task in table.scan(row_filter=wanted).plan_files()]
    assert [second in one for one in planned] == [True]
    assert table.scan(row_filter=wanted).to_arrow().num_rows == 24


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_file_in_another_partition_of_the_log_is_found(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format
) -> None:
    """The log's partition decides which queries see a file: verify compares it."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0, DAY_0 + 24 * HOUR])
    load(node, topic, tmp_path, EventSettings("day"), format=kind)
    table = existing_table(str(tmp_path))
    chain = [(link.manifest, link.after.digest) for link in table.links() if link.manifest]
    manifest, digest = chain[0]
    files = tuple(replace(file, event="2026-03-09") for file in manifest.files)
    problems = table.audit([(replace(manifest, files=files), digest)]).problems
    assert any("is of 2026-03-01, and its manifest of 2026-03-09" in one for one in problems)


def test_duckdb_reads_the_files_of_one_day_only(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The folders' names are columns: a query for a day opens that day's files."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0 + number * HOUR for number in range(72)])
    load(node, topic, tmp_path, EventSettings("day"))
    with duckdb.connect() as engine:
        engine.execute(CliRunner().invoke(files, [str(tmp_path), "--sql", "duckdb"]).output)
        query = f"select count(*) from \"{tmp_path.name}\" where event_day = date '2026-03-02'"
        assert engine.sql(query).fetchall() == [(24,)]
        plan = engine.sql(f"explain analyze {query}").fetchall()[0][1]
        assert "1/3" in plan.replace("Scanning Files: ", "")


@pytest.mark.parametrize(("by", "shown"), [("day", "2026-03-01"), ("hour", "2026-03-01-00")])
def test_folders_above_a_table_are_no_columns_of_its_view(
    node: Node, make_topic: MakeTopic, tmp_path: Path, by: By, shown: str
) -> None:
    """Folders named like Hive's partitions overwrite no column; the table's own are one."""
    topic, target = make_topic(node, partitions=1), tmp_path / "partition=7" / "x=1" / "the table"
    send(node, topic, [DAY_0, DAY_0 + HOUR])
    for place, events in ((target, EventSettings()), (target / "by", EventSettings(by))):
        load(node, topic, place, events)
        with duckdb.connect() as engine:
            engine.execute(CliRunner().invoke(files, [str(place), "--sql", "duckdb"]).output)
            view = engine.sql(f'select * from "{place.name}" order by "offset"')
            expected = list(ottla.lake.table(str(target)).to_arrow().schema.names)
            first = dict(zip(view.columns, view.fetchall()[0], strict=True))
            assert first["partition"] == 0
            assert list(view.columns) == expected + ([f"event_{by}"] if place != target else [])
            assert place == target or str(first[f"event_{by}"]) == shown


def test_a_view_has_the_name_of_the_folder(
    node: Node, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the folder is a URL, or the present one."""
    topic, target = make_topic(node, partitions=1), tmp_path / "with space"
    send(node, topic, [DAY_0])
    load(node, topic, target, EventSettings())
    monkeypatch.chdir(target)
    for said in (str(target), f"{target}/", target.as_uri(), ".", "../with space"):
        output = CliRunner().invoke(files, [said, "--sql", "duckdb"]).output
        assert output.startswith('CREATE OR REPLACE VIEW "with space" AS'), output


def test_the_first_load_decides_how_rows_are_kept_apart(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A contradiction is refused with what the table has; nothing is committed."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0])
    load(node, topic, tmp_path / "day", EventSettings("day"))
    load(node, topic, tmp_path / "plain", EventSettings())
    send(node, topic, [DAY_0])
    with pytest.raises(OttlaError, match="this table is partitioned by day, which its first load"):
        load(node, topic, tmp_path / "day", EventSettings("hour"))
    with pytest.raises(OttlaError, match="the event time of this table is its column timestamp"):
        load(node, topic, tmp_path / "day", EventSettings(column="at"))
    with pytest.raises(OttlaError, match="this table is not partitioned by event time"):
        load(node, topic, tmp_path / "plain", EventSettings("day"))
    assert len(rows_of(tmp_path / "day")) == len(rows_of(tmp_path / "plain")) == 1


def test_a_decoded_column_is_the_event_time_and_null_has_a_partition(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number in range(30):
        at = datetime.fromtimestamp((DAY_0 + number * HOUR) / 1000, UTC)
        fields = {"id": number} if number % 10 == 3 else {"id": number, "at": at.isoformat()}
        producer.produce(topic, json.dumps(fields).encode())
    assert producer.flush(120) == 0
    declared = columns({"id": "int64", "at": "timestamp"})
    decode = ottla.lake.Decode(value=ottla.lake.Format("json", columns=declared))
    load(node, topic, tmp_path, EventSettings("day", "at"), decode=decode)

    folders = {path.name: path for path in (tmp_path / "data").iterdir()}
    assert sorted(folders) == [
        "event_day=2026-03-01",
        "event_day=2026-03-02",
        "event_day=__HIVE_DEFAULT_PARTITION__",
    ]
    (null_file,) = folders["event_day=__HIVE_DEFAULT_PARTITION__"].iterdir()
    with pq.ParquetFile(null_file) as file:
        assert file.read().column("id").to_pylist() == [3, 13, 23]
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 30, 30)


def test_rows_in_the_wrong_folder_are_found(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A manifest whose file lies in another day than its rows is no proof."""
    from tests.unit.lake.tables import forge, manifest_path

    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0, DAY_0 + 24 * HOUR])
    load(node, topic, tmp_path, EventSettings("day"))
    other = tmp_path / "data/event_day=2026-03-05"
    other.mkdir()

    def change(fields: dict[str, Any]) -> None:
        file = fields["files"][0]
        moved = file["path"].replace("2026-03-01", "2026-03-05")
        (tmp_path / file["path"]).rename(tmp_path / moved)
        file["path"], file["event"] = moved, "2026-03-05"

    forge(manifest_path(tmp_path, 1), change)
    for head in (tmp_path / "_ottla/heads").iterdir():
        head.unlink()
    problems = ottla.lake.verify(str(tmp_path), bootstrap=None).problems
    assert any("holds rows of 2026-03-01, which is no 2026-03-05" in one for one in problems)


def test_rows_behind_the_watermark_are_kept_refused_or_dead_letters(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """After 12:00 with an hour allowed, 10:59 is late and 11:00 is not; all is accounted for."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [DAY_0 + 12 * HOUR])
    first = load(node, topic, tmp_path, EventSettings("hour", lateness_ms=HOUR))
    assert first.manifest.events.watermark_ms == DAY_0 + 11 * HOUR
    send(node, topic, [DAY_0 + 11 * HOUR, DAY_0 + 11 * HOUR - 60_000, DAY_0 + 13 * HOUR])

    with pytest.raises(OttlaError, match="offset 2 is late: its event time 2026-03-01T10:59:00"):
        load(node, topic, tmp_path, EventSettings(late_rows="fail"))
    done = load(node, topic, tmp_path, EventSettings(late_rows="dead-letter"))
    (ledger,) = done.ledgers
    assert (ledger.loaded, ledger.dead_letters) == (2, 1)
    assert dict(done.manifest.events.late) == {0: 1}
    (letter,) = letters_of_table(str(tmp_path))
    assert (letter.offset, letter.letter.stage) == (2, "late")

    send(node, topic, [DAY_0])
    kept = load(node, topic, tmp_path, EventSettings(late_rows="keep"))
    assert (kept.rows, dict(kept.manifest.events.late)) == (1, {0: 1})
    assert kept.manifest.events.watermark_ms == DAY_0 + 12 * HOUR
    assert (tmp_path / "data/event_hour=2026-03-01-00").is_dir()
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared, found.dead_letters) == ([], 4, 5, 1)


@pytest.mark.parametrize("by", ["day", "hour", "month"])
def test_times_of_years_that_have_no_name_do_not_damage_a_partitioned_table(
    node: Node, make_topic: MakeTopic, tmp_path: Path, by: By
) -> None:
    """Microseconds where milliseconds belong: refused, or dead letters; it goes on afterwards."""
    bounds = ("message_timestamp_after_max_ms", "message_timestamp_before_max_ms")
    topic = make_topic(node, partitions=1, **dict.fromkeys(bounds, str((1 << 63) - 1)))
    last = 253_402_300_800_000  # The first moment of the year 10000.
    send(node, topic, [DAY_0, last - 1])
    assert load(node, topic, tmp_path, EventSettings(by)).rows == 2
    send(node, topic, [DAY_0 * 1000, last, DAY_0 - HOUR])

    with pytest.raises(OttlaError, match=f"offset 2 can't be kept apart by {by}") as refused:
        load(node, topic, tmp_path, EventSettings())
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    done = load(node, topic, tmp_path, EventSettings(late_rows="dead-letter"))
    (ledger,) = done.ledgers
    assert (ledger.loaded, ledger.dead_letters) == (0, 3)
    found = [(one.offset, one.letter.stage) for one in letters_of_table(str(tmp_path))]
    assert found == [(2, "event_time"), (3, "event_time"), (4, "late")]
    send(node, topic, [DAY_0 + HOUR])
    load(node, topic, tmp_path, EventSettings(late_rows="keep"))
    proof = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (proof.problems, proof.rows, proof.dead_letters) == ([], 3, 3)


def test_status_says_up_to_when_all_is_in(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """An idle partition holds it back, unless it may follow the clock; a future time does not."""
    late = {"message_timestamp_after_max_ms": str((1 << 63) - 1)}
    topic = make_topic(node, partitions=2, **late)
    send(node, topic, [DAY_0 + 9 * HOUR, 4_000_000_000_000], partition=0)
    load(node, topic, tmp_path, EventSettings("day"))
    assert status(str(tmp_path), None).complete == ""
    # Two hours behind the clock is later than any of its event times.
    done = load(node, topic, tmp_path, EventSettings(idle_ms=2 * HOUR))
    assert done.manifest.version == 2
    assert (done.rows, done.manifest.events.highest) == (0, {0: DAY_0 + 9 * HOUR})
    mark = min(done.manifest.events.empty_at.values()) - 2 * HOUR
    assert done.manifest.events.watermark_ms == mark
    found = status(str(tmp_path), node.bootstrap)
    assert found.watermark_ms == mark
    assert found.complete.startswith("all before 20")
    # Another load of nothing within the same day commits nothing.
    assert load(node, topic, tmp_path, EventSettings()).manifest.version == 2
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).problems == []


def test_a_load_names_the_transaction_that_holds_its_end_back(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Also a partition that waits for it is not taken for idle."""
    topic = make_topic(either, partitions=1)
    producer = Producer(
        {"bootstrap.servers": either.bootstrap, "transactional.id": f"of-{topic}", "log_level": 0}
    )
    producer.init_transactions(90)
    producer.begin_transaction()
    producer.produce(topic, b"v", timestamp=DAY_0)
    producer.flush()
    done = load(either, topic, tmp_path, EventSettings("day", idle_ms=0))
    (line,) = done.held_back
    assert line.startswith(f"{topic}-0 is read up to offset 0 only, though it has records up to 1")
    assert f"the transaction of 'of-{topic}'" in line
    assert done.manifest.events.empty_at == {}
    assert status(str(tmp_path), either.bootstrap).held_back == (line,)
    producer.commit_transaction(90)
    # The marker is written soon after the answer.
    until(lambda: load(either, topic, tmp_path, EventSettings()).held_back == ())
    assert len(rows_of(tmp_path)) == 1


def test_spark_writes_and_reads_partitions(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Spark finds the column in the folders' names, and reads the files of an hour only."""
    topic = make_topic(node, partitions=2)
    for partition in (0, 1):
        send(node, topic, [DAY_0 + number * HOUR // 4 for number in range(40)], partition=partition)
    ottla.lake.load(
        topic,
        str(tmp_path),
        bootstrap=node.bootstrap,
        partition_by="hour",
        spark_session=spark,
    )
    frame = spark.read.parquet(str(tmp_path / "data")).where("event_hour = '2026-03-01-03'")
    assert frame.count() == 8
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(event_hour" in plan
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 80, 80)
