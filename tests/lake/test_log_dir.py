"""Segment files read directly give bit by bit what the leader gives, and never more or others."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import run_here
from ottla.lake.cluster import KafkaCluster
from ottla.lake.datasource import OttlaSource
from ottla.lake.replica import files
from ottla.lake.source import Fetched

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The starts of what was fetched over the network."""
    starts: list[int] = []
    fetch = KafkaCluster.fetch

    def counted(self: KafkaCluster, wanted: Any) -> Iterator[Fetched]:
        starts.append(wanted.start)
        return fetch(self, wanted)

    monkeypatch.setattr(KafkaCluster, "fetch", counted)
    return starts


def load(node: Node, topic: str, target: Path, **arguments: Any) -> Any:
    logs = str(node.folder / "logs")
    return ottla.lake.load(
        topic,
        str(target),
        bootstrap=node.bootstrap,
        runner=run_here,
        **({"log_dirs": [logs]} | arguments),
    )


def require_equal(node: Node, topic: str, folder: Path) -> Any:
    """Both ways give the same rows, hash and ledgers; the manifest of the direct one."""
    direct = load(node, topic, folder / "direct").manifest
    by_leader = load(node, topic, folder / "by-leader", log_dirs=()).manifest
    assert (direct.hash, direct.rows) == (by_leader.hash, by_leader.rows)
    assert direct.ledgers == by_leader.ledgers
    return direct


def test_rows_are_equal_over_segments_and_compressions(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, network: list[int]
) -> None:
    """Nothing is fetched over the network, though the log grew since it was opened."""
    topic = make_topic(either, partitions=2, internal_segment_bytes="5000")
    for turn, compression in enumerate(("none", "lz4", "zstd", "gzip", "snappy")):
        produce(either, topic, turn * 500, turn * 500 + 500, **{"compression.type": compression})
    first = load(either, topic, tmp_path / "direct")
    assert first.rows == 2500
    assert len(list((either.folder / "logs" / f"{topic}-0").glob("*.log"))) > 2
    assert network == []
    produce(either, topic, 2500, 2600)
    load(either, topic, tmp_path / "direct")
    assert network == []
    assert ottla.lake.verify(str(tmp_path / "direct"), bootstrap=either.bootstrap).proven
    read = OttlaSource(
        {
            "subscribe": topic,
            "kafka.bootstrap.servers": either.bootstrap,
            "logDir": str(either.folder / "logs"),
        }
    ).reader(None)
    network.clear()
    assert sum(b.num_rows for one in read.partitions() for b in read.read(one)) == 2600
    assert network == []


def test_the_leader_confirms_a_range_once(
    either: Node,
    make_topic: MakeTopic,
    produce: Produce,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many pieces its files are read in."""
    topic = make_topic(either, partitions=1)
    for turn in range(4):
        produce(either, topic, turn * 500, turn * 500 + 500)
    asked: list[Any] = []
    epoch_ends = KafkaCluster.epoch_ends

    def counted(self: KafkaCluster, topic: str, epochs: Any) -> Any:
        asked.append(epochs)
        return epoch_ends(self, topic, epochs)

    monkeypatch.setattr(KafkaCluster, "epoch_ends", counted)
    monkeypatch.setattr(files, "CHUNK_BYTES", 1500)
    assert require_equal(either, topic, tmp_path).rows == 2000
    assert len(asked) == 1


def test_aborted_transactions_are_left_out_by_their_markers(
    either: Node, make_topic: MakeTopic, tmp_path: Path, network: list[int]
) -> None:
    """Two producers interleaved, one that aborts; an open one holds the end back."""
    topic = make_topic(either, partitions=1)
    producers = [
        Producer(
            {
                "bootstrap.servers": either.bootstrap,
                "transactional.id": f"{topic}{n}",
                "log_level": 0,
            }
        )
        for n in range(2)
    ]
    for producer in producers:
        producer.init_transactions(90)
    for turn in range(8):
        for producer in producers:
            producer.begin_transaction()
        for number in range(12):
            producers[number % 2].produce(topic, b"%d-%d" % (turn, number), partition=0)
            producers[number % 2].flush()
        producers[turn % 2].abort_transaction(90)
        if turn == 7:
            break
        producers[1 - turn % 2].commit_transaction(90)

    manifest = require_equal(either, topic, tmp_path)
    (ledger,) = manifest.ledgers
    assert ledger.loaded == 7 * 6
    assert ledger.aborted >= 7 * 6
    assert len(network) == 1  # Only the load by the leader.
    producers[1 - 7 % 2].abort_transaction(90)


def test_deleted_records_are_not_read_though_their_files_are_there(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 100)
    admin = AdminClient({"bootstrap.servers": either.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, 0, 37)]).values():
        future.result(60)
    manifest = require_equal(either, topic, tmp_path)
    assert (manifest.ledgers[0].start, manifest.rows) == (37, 63)


def test_files_that_are_damaged_or_of_another_topic_are_not_believed(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, network: list[int]
) -> None:
    """A copy of a log: a flipped bit is found by its checksum, and the leader gives the rest."""
    topic, other = make_topic(node, partitions=1), make_topic(node, partitions=1)
    for turn in range(5):
        produce(node, topic, turn * 20, turn * 20 + 20)
    produce(node, other, 0, 30)
    source = node.folder / "logs"
    copy = tmp_path / "copy" / f"{topic}-0"
    copy.mkdir(parents=True)
    for path in (source / f"{topic}-0").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (segment,) = copy.glob("*.log")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 4
    segment.write_bytes(content)
    done = load(node, topic, tmp_path / "t", log_dirs=[str(tmp_path / "copy")])
    assert done.rows == 100
    assert network
    network.clear()
    # The folder is of the other topic by its id.
    copy.rename(copy.parent / f"{other}-0")
    assert load(node, other, tmp_path / "u", log_dirs=[str(tmp_path / "copy")]).rows == 30
    assert network == [0]
    assert ottla.lake.verify(str(tmp_path / "u"), bootstrap=node.bootstrap).proven


def test_the_files_of_a_replica_that_has_diverged_are_refused(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """In their leader epoch the leader's log ends earlier (here: it knows no such epoch)."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 20)
    source = node.folder / "logs" / f"{topic}-0"
    copy = tmp_path / "copy" / source.name
    copy.mkdir(parents=True)
    for path in source.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (segment,) = copy.glob("*.log")
    longer = bytearray(segment.read_bytes())
    again = bytearray(longer)
    again[0:8] = (20).to_bytes(8, "big")
    segment.write_bytes(longer + again)
    produce(node, topic, 20, 60)
    # Its leader epoch is not under the checksum.
    again[12:16] = (7).to_bytes(4, "big")
    segment.write_bytes(longer + again)
    with pytest.raises(OttlaError, match="are not what its leader has"):
        load(node, topic, tmp_path / "t", log_dirs=[str(tmp_path / "copy")])


def test_a_directory_without_files_of_the_topic_is_said(
    either: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, caplog: Any
) -> None:
    """All is fetched then, and a line says why; a directory that serves is no news."""
    topic = make_topic(either, partitions=1)
    produce(either, topic, 0, 10)
    nowhere, empty, other, file = (tmp_path / one for one in ("nowhere", "empty", "other", "file"))
    empty.mkdir()
    other.mkdir()
    own = (either.folder / "logs" / "meta.properties").read_text()
    (other / "meta.properties").write_text(re.sub("cluster.id=.*", "cluster.id=another", own))
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "meta.properties").write_text(own)
    file.write_text("")

    def said(folder: Path, **arguments: Any) -> list[str]:
        caplog.clear()
        target = tmp_path / f"table-{folder.name}"
        assert load(either, topic, target, log_dirs=[str(folder)], **arguments).rows == 10
        return [one.getMessage() for one in caplog.records if "log-dir" in one.getMessage()]

    assert said(either.folder / "logs") == []
    for folder, why in {
        nowhere: "does not exist",
        file: "is no folder",
        empty: "is no broker's log directory: it has no meta.properties",
        other: "is of cluster another",
        bare: f"has no partition of {topic} with id",
    }.items():
        (line,) = said(folder)
        assert line.startswith(f"--log-dir {folder} {why}")
        assert f"fetch {topic} from its leaders" in line
