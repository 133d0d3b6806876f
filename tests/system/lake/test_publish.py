"""`publish`: tables and files in a topic, exactly once, whatever is killed."""

import json
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import Fields, PublishPace, run_here
from ottla.lake.tables.opening import existing_table
from tests.system.lake.test_sink import committed
from tests.unit.lake.forked import begin, end_of

MakeTopic = Callable[..., str]
Produce = Callable[..., None]
STEPS = ("id taken over", "position read", "records sent", "position added", "committed")


def contents(node: Node, topic: str) -> dict[int, list[bytes]]:
    return {p: [m.value() for m in messages] for p, messages in committed(node, topic).items()}


def write_lines(folder: Path, first: int, last: int, per_file: int) -> None:
    """JSON lines with a key of seven and a number, over files in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(first, last, per_file):
        lines = [
            json.dumps({"k": f"k{n % 7}", "n": n}) + "\n"
            for n in range(start, min(start + per_file, last))
        ]
        (folder / f"{start:08}.jsonl").write_text("".join(lines))


def require_all(node: Node, topic: str, count: int) -> None:
    """Every number once, in order in each partition."""
    found = {
        p: [json.loads(value)["n"] for value in values]
        for p, values in contents(node, topic).items()
    }
    assert sorted(n for numbers in found.values() for n in numbers) == list(range(count))
    for numbers in found.values():
        assert numbers == sorted(numbers)


def test_table_comes_back_as_the_topic_was(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Loaded, published: keys, values, headers, timestamps, and the order of each partition."""
    source, target = make_topic(either, partitions=3), make_topic(either, partitions=3)
    for first in (0, 200):
        produce(either, source, first, first + 200)
        ottla.lake.load(source, str(tmp_path), bootstrap=either.bootstrap, runner=run_here)
    done = ottla.lake.publish(
        str(tmp_path),
        target,
        bootstrap=either.bootstrap,
        fields=Fields(partition="partition"),
        transaction_records=64,
    )
    assert (done.records, done.total) == (400, 400)
    before, after = (
        {
            p: [(m.key(), m.value(), m.headers(), m.timestamp()) for m in messages]
            for p, messages in committed(either, topic).items()
        }
        for topic in (source, target)
    )
    assert after == before

    produce(either, source, 400, 450)
    ottla.lake.load(source, str(tmp_path), bootstrap=either.bootstrap, runner=run_here)
    again = [
        ottla.lake.publish(
            str(tmp_path), target, bootstrap=either.bootstrap, fields=Fields(partition="partition")
        )
        for _ in range(2)
    ]
    assert [(done.records, done.total) for done in again] == [(50, 450), (0, 450)]


def test_rows_keep_their_order_after_a_compaction(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """It is a later commit of earlier offsets; the later record of a key must stay behind."""
    topic, again = make_topic(node, partitions=2), make_topic(node, partitions=2)
    for turn, count in enumerate((40, 40, 4_000, 40)):
        produce(node, topic, 10_000 * turn, 10_000 * turn + count)
        ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    small = max(file.size_bytes for file in existing_table(str(tmp_path)).live_files()) // 2
    done = ottla.lake.compact(str(tmp_path), target_size=small, master="here")
    assert done.removed == 4
    ottla.lake.publish(
        str(tmp_path), again, bootstrap=node.bootstrap, fields=Fields(partition="partition")
    )
    assert contents(node, again) == contents(node, topic)


def test_files_of_each_kind(node: Node, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Parquet, CSV and JSON lines: keys by name, all columns as JSON, lines as they stand."""
    rows = {"k": ["a", "b", None], "n": [1, 2, 3]}
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    (tmp_path / "f.csv").write_text('k,n\na,1\n"b",2\n,"x\ny"\n')
    (tmp_path / "f.jsonl").write_text('{"k": "a", "n": 1}\n\n {"k":"b"}\n')
    found = {}
    for name in ("f.parquet", "f.csv", "f.jsonl"):
        topic = make_topic(node, partitions=1)
        ottla.lake.publish(
            str(tmp_path / name), topic, bootstrap=node.bootstrap, fields=Fields(key="k")
        )
        found[name] = [(m.key(), m.value()) for m in committed(node, topic)[0]]
    assert found == {
        "f.parquet": [
            (b"a", b'{"k":"a","n":1}'),
            (b"b", b'{"k":"b","n":2}'),
            (None, b'{"k":null,"n":3}'),
        ],
        "f.csv": [
            (b"a", b'{"k":"a","n":"1"}'),
            (b"b", b'{"k":"b","n":"2"}'),
            (b"", b'{"k":"","n":"x\\ny"}'),
        ],
        "f.jsonl": [(b"a", b'{"k": "a", "n": 1}'), (b"b", b'{"k":"b"}')],
    }


def test_files_added_behind_are_published_and_others_refused(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A dry run says what is left; a source that has changed before the position is refused."""
    topic, folder = make_topic(node, partitions=2), tmp_path / "in"
    write_lines(folder, 0, 100, 30)

    def publish(**named: bool) -> ottla.lake.PublishResult:
        fields = Fields(key="k")
        return ottla.lake.publish(
            str(folder), topic, bootstrap=node.bootstrap, fields=fields, **named
        )

    assert publish(dry_run=True).files_left == 4
    assert publish().records == 100
    write_lines(folder, 100, 160, 30)
    assert publish(dry_run=True).files_left == 3  # The last file may have rows left.
    assert publish().records == 60
    require_all(node, topic, 160)
    (folder / "0").mkdir()
    (folder / "0" / "early.jsonl").write_text('{"n": -1}\n')
    with pytest.raises(OttlaError, match="the source has changed since the last publish"):
        publish()
    require_all(node, topic, 160)


def test_wrong_words_are_refused_before_anything_is_sent(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": \n')

    def publish(source: str, topic: str, fields: Fields | None = None) -> None:
        ottla.lake.publish(source, topic, bootstrap=node.bootstrap, fields=fields)

    for source, to, fields, words in (
        (str(tmp_path / "b.csv"), topic, None, "there is no file"),
        (str(tmp_path / "none"), topic, None, "nothing to publish"),
        (str(tmp_path), topic + "x", None, f"did you mean {topic}"),
        (str(tmp_path), topic, Fields(key="z"), "there is no column 'z'; there are n"),
        (str(tmp_path), topic, Fields(key="n"), "line 2 of a.jsonl is not a JSON object"),
    ):
        with pytest.raises(OttlaError, match=words):
            publish(source, to, fields)
    assert contents(node, topic) == {0: []}


def test_pace_is_kept_and_slow_rows_are_committed_early(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """No faster than said; the lower bound alone is checked."""
    topic = make_topic(node, partitions=1)
    write_lines(tmp_path / "in", 0, 100, 50)
    began_s = time.monotonic()
    ottla.lake.publish(
        str(tmp_path / "in"), topic, bootstrap=node.bootstrap, pace=PublishPace(records_per_s=100)
    )
    assert time.monotonic() - began_s >= 0.9
    require_all(node, topic, 100)


def test_second_run_at_once_fences_the_first(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The one that began last goes on; the other commits nothing any more."""
    topic = make_topic(node, partitions=1)
    write_lines(tmp_path / "in", 0, 100, 100)

    def publish(on_step: Callable[[str], None] = lambda _step: None) -> None:
        ottla.lake.publish(
            str(tmp_path / "in"),
            topic,
            bootstrap=node.bootstrap,
            on_step=on_step,
            transaction_records=1,
        )

    others: list[str] = []

    def at(step: str) -> None:
        if step == "records sent" and not others:
            others.append(step)
            publish()

    with pytest.raises(OttlaError, match="another one with this id has taken over"):
        publish(at)
    require_all(node, topic, 100)


def child(node: Node, topic: str, folder: Path, step: str) -> ForkServerProcess:
    """A publish in a process of its own, which kills itself at the third time of `step`."""
    program = f"""
import os, ottla.lake
seen = []
def at(step):
    seen.append(step)
    if step == {step!r} and seen.count(step) == (1 if step in {STEPS[:2]!r} else 3):
        os.kill(os.getpid(), 9)
ottla.lake.publish({str(folder)!r}, {topic!r}, bootstrap={node.bootstrap!r}, on_step=at,
    fields=ottla.lake.Fields(key="k"), transaction_records=50, pace=ottla.lake.PublishPace(20_000))
"""
    return begin(program)


def test_publish_is_exact_killed_at_any_step_and_at_random(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Each time a process of its own, killed with -9; the last one comes to the end."""
    topic, chance = make_topic(node, partitions=3), random.Random(3)
    write_lines(tmp_path, 0, 6_000, 1_000)
    for step in (*STEPS, "", "", ""):
        process = child(node, topic, tmp_path, step)
        if step:
            assert end_of(process) == -signal.SIGKILL
        else:
            time.sleep(chance.uniform(0.0, 0.5))
            process.kill()
            end_of(process)
    assert end_of(child(node, topic, tmp_path, "")) == 0
    require_all(node, topic, 6_000)


@pytest.mark.timeout(300)
def test_publish_is_exact_on_kafka(kafka_node: Node, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(kafka_node, partitions=3)
    write_lines(tmp_path, 0, 2_000, 300)
    for step in STEPS:
        assert end_of(child(kafka_node, topic, tmp_path, step)) == -signal.SIGKILL
    assert end_of(child(kafka_node, topic, tmp_path, "")) == 0
    require_all(kafka_node, topic, 2_000)
