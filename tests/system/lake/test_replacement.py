"""A replacement reads a range again: in one commit, proven, repeatable; no loss goes unsaid."""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.client.admin.compaction import CompactAction
from ottla.lake import Decode, run_here
from ottla.lake import Format as ValueFormat
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import CommitConflict
from ottla.lake.write.dead_letters import letters_of_table, redrive_table
from tests.unit.lake.forked import exit_code_of
from tests.unit.lake.logged import readers
from tests.unit.lake.upkeep.test_compacting import FORMATS

MakeTopic = Callable[..., str]


def send(node: Node, topic: str, values: list[bytes], partition: int = 0) -> None:
    with sync.Producer(node.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)
        producer.flush()


def load(node: Node, topic: str, target: Path, **more: Any) -> Any:
    return ottla.lake.load(topic, str(target), bootstrap=node.bootstrap, runner=run_here, **more)


def replace(
    node: Node, topic: str, target: Path, start: str, end: str, **more: Any
) -> ottla.lake.ReplacementResult:
    return ottla.lake.replace(
        *(topic, str(target)),
        start=start,
        end=end,
        bootstrap=node.bootstrap,
        runner=run_here,
        **more,
    )


def proven(node: Node, target: Path) -> ottla.lake.Verification:
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap)
    assert (found.problems, found.uncounted) == ([], [])
    return found


def table_rows(folder: Path, kind: str) -> list[tuple[int, int]]:
    by_duckdb = readers.rows_by_duckdb(folder)
    if kind != "parquet":
        assert readers.rows_by_format(folder, kind) == by_duckdb
    return by_duckdb


def forget(node: Node, topic: str, before: int) -> None:
    """Have the topic delete what lies before an offset."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    place = TopicPartition(topic, 0, before)
    admin.delete_records([place])[place].result(60)


def decoded(node: Node, topic: str, target: Path, kind: Format = "parquet") -> None:
    """30 records of ids, in three loads, whose rule takes every fifth id for a bad one."""
    decode = Decode(
        value=ValueFormat("json", ottla.lake.columns({"id": "int32"})),
        on_bad_record="dead-letter",
    )
    for number in range(3):
        ids = range(10 * number, 10 * number + 10)
        send(node, topic, [b'{"id": %s}' % (b'"x"' if i % 5 == 0 else b"%d" % i) for i in ids])
        load(node, topic, target, decode=decode, format=kind)


@FORMATS
def test_a_range_is_decoded_again_by_a_mended_rule(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format
) -> None:
    """Rows take the place of dead letters; files that stick out keep their other rows and hash."""
    topic = make_topic(node, partitions=1)
    decoded(node, topic, tmp_path, kind)
    before = proven(node, tmp_path)
    assert (before.rows, before.dead_letters) == (24, 6)

    done = replace(node, topic, tmp_path, "0:7", "0:23", decode=wider())
    assert done.manifest is not None
    assert (done.rows, done.removed_rows, done.manifest.kind) == (16, 13, "replacement")
    after = proven(node, tmp_path)
    assert (after.rows, after.dead_letters, after.compared) == (27, 3, 30)
    assert [one.offset for one in letters_of_table(str(tmp_path))] == [0, 5, 25]
    missing = {0, 5, 25}
    assert table_rows(tmp_path, kind) == [(0, at) for at in range(30) if at not in missing]
    cut = list(existing_table(str(tmp_path)).history())[-2]
    assert (cut.kind, sum(file.rows for file in cut.removed), cut.rows) == ("compaction", 16, 16)

    again = replace(node, topic, tmp_path, "0:7", "0:23")
    assert (again.manifest, again.rows) == (None, 16)
    assert proven(node, tmp_path).other_commits == after.other_commits
    expired = ottla.lake.expire(str(tmp_path), keep=1)
    assert [one for one in expired.removed if one.startswith("_dead_letters/")]
    assert proven(node, tmp_path).dead_letters == 3


def wider() -> Decode:
    """A rule that no value breaks."""
    return Decode(
        value=ValueFormat("json", ottla.lake.columns({"id": "int32"})), on_bad_record="null"
    )


@FORMATS
def test_a_damaged_table_is_mended_from_the_topic(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format
) -> None:
    """A file that is missing, and one with a flipped byte, are read again; no row is lost."""
    topic = make_topic(node, partitions=1)
    for _ in range(3):
        send(node, topic, [b"v%d" % number for number in range(10)])
        load(node, topic, tmp_path, format=kind)
    first, second, _ = (tmp_path / one.path for one in existing_table(str(tmp_path)).live_files())
    first.unlink()
    content = bytearray(second.read_bytes())
    content[40] ^= 1
    second.write_bytes(content)
    assert not ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven

    done = replace(node, topic, tmp_path, "0:0", "0:20")
    assert (done.rows, done.removed_rows) == (20, 20)
    assert table_rows(tmp_path, kind) == readers.expected(1, 30)
    found = proven(node, tmp_path)
    assert (found.rows, found.compared, found.expired) == (30, 30, [(1, 3)])


def test_a_damaged_file_among_overlapping_ones_is_no_loss(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Files of hours overlap after a compaction; aborted records beside them are not theirs."""
    topic = make_topic(node, partitions=1)
    config = {"bootstrap.servers": node.bootstrap, "log_level": 0}
    aborted = Producer({**config, "transactional.id": topic})
    aborted.init_transactions()
    aborted.begin_transaction()
    aborted.produce(topic, b"aborted")
    aborted.flush()
    aborted.abort_transaction()
    events: dict[str, Any] = {"partition_by": "hour", "allowed_lateness": 1 << 40}
    for hours in ([0, 1], [1, 2]):
        producer = Producer(config)
        for number in range(20):
            at = 3_600_000 * hours[number % 2]
            producer.produce(topic, b"v%d" % number, timestamp=1_700_000_000_000 + at)
        assert producer.flush(60) == 0
        load(node, topic, tmp_path, **events)
        events = {}
    ottla.lake.compact(str(tmp_path), master="here")
    before = {
        file.path: (tmp_path / file.path).read_bytes()
        for file in existing_table(str(tmp_path)).live_files()
    }
    assert len(before) == 3
    for path in before:
        (tmp_path / path).write_bytes(b"no Parquet")
    done = replace(node, topic, tmp_path, "0:0", "0:42")
    assert (done.rows, done.removed_rows) == (40, 40)
    assert done.manifest is not None
    assert done.manifest.accepted_loss == {}
    assert proven(node, tmp_path).compared == 40


def test_what_the_topic_lacks_is_refused_unless_the_loss_is_accepted(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """It says which offsets and why, and changes nothing; accepted, the number is on record."""
    topic = make_topic(node, partitions=1)
    send(node, topic, [b"v"] * 30)
    load(node, topic, tmp_path)
    forget(node, topic, 10)
    with pytest.raises(OttlaError, match=r"starts at offset 10 by now.* 5 to 10 can't be read"):
        replace(node, topic, tmp_path, "0:5", "0:20")
    assert existing_table(str(tmp_path)).latest()[0].version == 1
    assert replace(node, topic, tmp_path, "0:10", "0:20").manifest is None

    done = replace(node, topic, tmp_path, "0:5", "0:20", accept_loss=True)
    assert done.manifest is not None
    assert (done.rows, done.removed_rows, done.manifest.accepted_loss) == (10, 15, {0: 5})
    found = proven(node, tmp_path)
    assert (found.rows, found.compared, found.only_in_lake) == (25, 20, 5)
    assert [(one.loaded, one.deleted) for one in found.read_again] == [(10, 5)]
    assert replace(node, topic, tmp_path, "0:5", "0:20", accept_loss=True).manifest is None


def test_rows_that_compaction_took_from_the_topic_are_a_loss(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Offset by offset: that another row came in its place makes none of them good."""
    topic = make_topic(node, cleanup_policy="compact", min_cleanable_dirty_ratio="1", partitions=1)
    with sync.Producer(node.bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"v%d" % number, b"k%d" % (number % 3), partition=0)
            producer.flush()
    load(node, topic, tmp_path)
    with sync.Admin(node.bootstrap) as admin:
        admin.compaction.describe_topic(topic, CompactAction.CLEAN)
        while any(
            one.wanted_end >= 0 or one.is_running for one in admin.compaction.describe_topic(topic)
        ):
            time.sleep(0.02)
    with pytest.raises(OttlaError, match=r"does not hold any more: 17 of .*--accept-loss"):
        replace(node, topic, tmp_path, "0:0", "0:20")
    found = proven(node, tmp_path)
    assert (found.rows, found.only_in_lake) == (20, 17)
    done = replace(node, topic, tmp_path, "0:10", "0:20", accept_loss=True)
    assert done.manifest is not None
    assert (done.rows, done.manifest.accepted_loss) == (3, {0: 7})
    assert proven(node, tmp_path).rows == 13


def test_only_what_was_loaded_is_replaced(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By the table's own offsets, whatever the topic has; times mean what was loaded of them."""
    topic = make_topic(node, partitions=2)
    for partition in (0, 1):
        send(node, topic, [b"v"] * 10, partition)
    load(node, topic, tmp_path, start="0:4")
    for partition in (0, 1):
        send(node, topic, [b"w"] * 10, partition)
    for start, end in (("0:3", "0:8"), ("0:5", "0:11"), ("1:0", "1:20")):
        with pytest.raises(OttlaError, match="and not all from"):
            replace(node, topic, tmp_path, start, end)
    with pytest.raises(OttlaError, match="the end lies behind the start"):
        replace(node, topic, tmp_path, "0:8", "0:8")
    with pytest.raises(OttlaError, match="of the same partitions"):
        replace(node, topic, tmp_path, "0:4", "1:8")
    with pytest.raises(OttlaError, match=r"nothing of .* between these times"):
        replace(node, topic, tmp_path, "@4000000000000", "latest")
    done = replace(node, topic, tmp_path, "earliest", "latest")
    assert (done.manifest, done.ranges) == (None, {0: (4, 10), 1: (0, 10)})
    assert replace(node, topic, tmp_path, "0:5", "latest").ranges == {0: (5, 10)}


@FORMATS
def test_loads_commit_meanwhile_and_it_comes_on_top(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format
) -> None:
    topic = make_topic(node, partitions=1)
    decoded(node, topic, tmp_path, kind)

    def load_more(step: str) -> None:
        if step == "files written":
            send(node, topic, [b'{"id": 1}'] * 5)
            load(node, topic, tmp_path)

    done = replace(
        node,
        topic,
        tmp_path,
        "0:0",
        "0:20",
        decode=wider(),
        watch=ottla.lake.Observer(on_step=load_more),
    )
    assert done.manifest is not None
    assert done.manifest.version == 5
    assert (proven(node, tmp_path).rows, done.rows) == (33, 20)


@pytest.mark.parametrize("times", [1, 3])
def test_a_compaction_that_takes_its_files_is_met_again(
    node: Node, make_topic: MakeTopic, tmp_path: Path, times: int
) -> None:
    """The files are looked up anew; of a race that does not end it says that it lost."""
    topic = make_topic(node, partitions=1)
    decoded(node, topic, tmp_path)
    left = [times]

    def compact(step: str) -> None:
        if step == "files cut" and left[0]:
            left[0] -= 1
            ottla.lake.compact(str(tmp_path), master="here")

    def run() -> ottla.lake.ReplacementResult:
        return replace(
            node,
            topic,
            tmp_path,
            "0:7",
            "0:23",
            decode=wider(),
            watch=ottla.lake.Observer(on_step=compact),
        )

    if times == 1:
        assert run().rows == 16
    else:
        with pytest.raises(CommitConflict, match="run it again"):
            run()
    assert proven(node, tmp_path).rows == (27 if times == 1 else 24)


KILLED = """
import os, signal
import ottla.lake
from tests.system.lake.test_replacement import wider
left = [{times}]
def kill(step):
    if step == {step!r}:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
ottla.lake.replace(
    {topic!r}, {folder!r}, start="0:7", end="0:23", bootstrap={bootstrap!r}, decode=wider(),
    runner=ottla.lake.run_here, watch=ottla.lake.Observer(on_step=kill),
)
"""
# Step, how often it comes before the kill, and whether the new rows count then.
KILLS = [
    ("files written", 1, False),
    ("manifest offered", 1, False),
    ("manifest written", 1, False),
    ("files cut", 1, False),
    ("manifest offered", 2, False),
    ("manifest written", 2, True),
    ("head written", 2, True),
]


@pytest.mark.parametrize(
    ("kind", "step", "times", "is_done"),
    [
        *(("parquet", *one) for one in KILLS),
        *((kind, *one) for kind in ("delta", "iceberg") for one in KILLS[-4:-1]),
    ],
)
def test_killed_at_any_step_it_is_the_old_rows_or_the_new_ones(
    node: Node,
    make_topic: MakeTopic,
    tmp_path: Path,
    kind: Format,
    step: str,
    times: int,
    is_done: bool,
) -> None:
    """kill -9 at each step of both commits: proven as it stands, and run again it is done."""
    topic = make_topic(node, partitions=1)
    decoded(node, topic, tmp_path, kind)
    code = KILLED.format(
        topic=topic, folder=str(tmp_path), bootstrap=node.bootstrap, step=step, times=times
    )
    assert exit_code_of(code) == -signal.SIGKILL
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows) == ([], 27 if is_done else 24)

    again = replace(node, topic, tmp_path, "0:7", "0:23", decode=wider())
    assert (again.manifest is None) is is_done
    assert (proven(node, tmp_path).rows, len(table_rows(tmp_path, kind))) == (27, 27)


def test_letters_that_were_redriven_stay_so_in_other_files(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A mark is of a record: cut files and letters of another rule have it, too."""
    topic, again = make_topic(node, partitions=1), make_topic(node, partitions=1)
    decoded(node, topic, tmp_path)
    letters = asyncio.run(
        redrive_table(node.bootstrap, str(tmp_path), lambda one: one.offset < 20, to=again)
    )
    assert letters.sent == 4
    fields = ottla.lake.columns({"id": "int32", "more": "string"})
    rule = Decode(value=ValueFormat("json", fields), on_bad_record="dead-letter")
    assert replace(node, topic, tmp_path, "0:3", "0:8", decode=rule).manifest is not None
    found = letters_of_table(str(tmp_path))
    assert sorted((one.offset, one.redriven) for one in found) == [
        (0, True),
        (5, True),
        (10, True),
        (15, True),
        (20, False),
        (25, False),
    ]
    assert proven(node, tmp_path).dead_letters == 6


def test_files_by_event_time_are_cut_each_in_its_bucket(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Rows that came late are rows of their range when it is read again; no watermark moves."""
    topic, hour, day_0 = make_topic(node, partitions=1), 3_600_000, 1_772_323_200_000
    events: dict[str, Any] = {"partition_by": "day", "late_rows": "dead-letter"}
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for first in (0, 30):
        for number in range(first, first + 30):
            time_ms = day_0 + (number * 17 % 72) * hour
            producer.produce(topic, b"v%d" % number, b"k", 0, timestamp=time_ms)
        assert producer.flush(120) == 0
        load(node, topic, tmp_path, **events)
    before = proven(node, tmp_path)
    assert before.dead_letters > 0
    marks = existing_table(str(tmp_path)).latest()[0].events
    done = replace(node, topic, tmp_path, "0:7", "0:53")
    assert done.rows == 46
    found = proven(node, tmp_path)
    assert (found.rows + found.dead_letters, found.compared) == (60, 60)
    assert found.dead_letters < before.dead_letters
    assert existing_table(str(tmp_path)).latest()[0].events.watermarks == marks.watermarks
    assert replace(node, topic, tmp_path, "0:7", "0:53").manifest is None
    assert len(ottla.lake.expire(str(tmp_path), keep=1).removed) > 6
    assert proven(node, tmp_path).rows == found.rows
