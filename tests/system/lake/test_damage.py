"""Stored batches that are damaged: loads stop there, or leave out what is unreadable and say so."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic
from rig import kafka as rig_kafka
from rig.broker import ottla as ottla_broker
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.cli.command import cli
from ottla.client import sync
from ottla.client.ranges import RangeClient
from ottla.lake import run_here
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.source.cluster import Cluster
from ottla.ledger.partition import PartitionLedger
from ottla.record.header import BatchHeader
from ottla.record.reader import batches

Start = Callable[..., AbstractContextManager[Node]]
TOPIC = "damaged"
CASES = ["ottla", "kafka"]
# Where the fields of a header begin.
LENGTH, MAGIC = 8, 16


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Start:
    """Ottla or Kafka over a folder that is kept."""
    if request.param == "ottla":
        return ottla_broker
    reason = rig_kafka.available()
    if reason is not None:
        pytest.skip(reason)
    return partial(rig_kafka.kafka, quick=True)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that refuses its damaged log is asked again for a second, not for a minute."""

    def connect(self: Cluster, bootstrap: Bootstrap, *_patience: object) -> None:
        address = as_brokers(bootstrap).bootstrap
        self._client = RangeClient(address, read_committed=True, retry_timeout_ms=1000)

    monkeypatch.setattr(Cluster, "__init__", connect)


def fill(node: Node) -> None:
    """Twenty batches of five records, five batches in each segment."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, 1, 1, config={"internal.segment.bytes": "600"})
    admin.create_topics([topic])[TOPIC].result(90)
    with sync.Producer(node.bootstrap) as producer:
        for number in range(20):
            for _ in range(5):
                producer.send(TOPIC, b"value%02d" % number, key=b"k", partition=0)
            producer.flush()


class Segment:
    """The second segment's file: below the recovery point, and not the active one."""

    def __init__(self, folder: Path) -> None:
        self._path = sorted(folder.glob(f"**/{TOPIC}-0/*.log"))[1]
        self._before = self._path.read_bytes()
        found = list(batches(self._before))
        self._position, self.damaged = found[1]
        self.last_offset = found[-1][1].last_offset

    def flip(self, place: int, mask: int = 1) -> BatchHeader:
        """Flip a bit of the second batch; its header as it was written."""
        content = bytearray(self._before)
        content[self._position + place + (self.damaged.size if place < 0 else 0)] ^= mask
        self._path.write_bytes(content)
        return self.damaged

    def restore(self) -> None:
        self._path.write_bytes(self._before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


@pytest.mark.parametrize("start", CASES, indirect=True)
def test_a_flipped_byte_of_a_record(start: Start, folder: Path, tmp_path: Path) -> None:
    """Refused with place, cause and remedy; left out on demand; found when it is back."""
    target = str(tmp_path / "table")
    with start(folder=folder) as node:
        fill(node)
    segment = Segment(folder)
    bad = segment.flip(-2)
    with start(folder=folder) as node:
        load = partial(ottla.lake.load, TOPIC, target, bootstrap=node.bootstrap, runner=run_here)
        place = f"{TOPIC}-0 cannot be read at offset {bad.base_offset}: .* checksum"
        with pytest.raises(OttlaError, match=f"{place}.*--skip-unreadable"):
            load()
        assert ottla.lake.verify(target, bootstrap=node.bootstrap).loads == 0

        done = load(skip_unreadable=True)
        (ledger,) = done.ledgers
        assert (ledger.loaded, ledger.unreadable, ledger.unexplained) == (95, 5, 0)
        assert [(one.start, one.end) for one in done.skipped] == [
            (bad.base_offset, bad.last_offset + 1)
        ]
        found = ottla.lake.verify(target, bootstrap=node.bootstrap)
        assert found.problems == []
        assert (found.rows, found.compared, found.ledgers[0].unreadable) == (95, 95, 5)
        assert found.skipped == list(done.skipped)

    segment.restore()
    with start(folder=folder) as node:
        found = ottla.lake.verify(target, bootstrap=node.bootstrap)
        named = ", ".join(map(str, range(bad.base_offset, bad.last_offset + 1)))
        assert f"readable again since they were left out as unreadable: {named};" in "".join(
            found.problems
        )
        assert len(found.problems) == 1

        again = partial(
            ottla.lake.replace,
            TOPIC,
            target,
            start=f"0:{bad.base_offset}",
            end=f"0:{bad.last_offset + 1}",
            bootstrap=node.bootstrap,
            runner=run_here,
        )
        assert (again().rows, again().manifest) == (5, None)
        found = ottla.lake.verify(target, bootstrap=node.bootstrap)
        assert (found.problems, found.skipped) == ([], [])
        assert (found.rows, found.compared) == (100, 100)


@pytest.mark.parametrize("place", [LENGTH, MAGIC])
def test_a_damaged_header_costs_what_the_leader_does_not_give(
    place: int, folder: Path, tmp_path: Path
) -> None:
    """Ottla finds no offset behind it in the segment; reading goes on with the next one."""
    target = str(tmp_path / "table")
    with ottla_broker(folder=folder) as node:
        fill(node)
    segment = Segment(folder)
    bad = segment.flip(place, 0x40)
    with ottla_broker(folder=folder) as node:
        load = partial(ottla.lake.load, TOPIC, target, bootstrap=node.bootstrap, runner=run_here)
        with pytest.raises(OttlaError, match=f"cannot be read at offset {bad.base_offset}: "):
            load()
        done = load(skip_unreadable=True)
        lost = segment.last_offset + 1 - bad.base_offset
        assert done.ledgers == (PartitionLedger(0, 0, 100, loaded=100 - lost, unreadable=lost),)
        assert [(one.start, one.end) for one in done.skipped] == [
            (bad.base_offset, segment.last_offset + 1)
        ]
        assert ottla.lake.verify(target, bootstrap=node.bootstrap).problems == []


def test_damage_after_the_load_is_named(folder: Path, tmp_path: Path) -> None:
    """The lake has the rows, and the topic cannot prove them any more."""
    target = str(tmp_path / "table")
    with ottla_broker(folder=folder) as node:
        fill(node)
        ottla.lake.load(TOPIC, target, bootstrap=node.bootstrap, runner=run_here)
        bad = Segment(folder).flip(-2)
        found = ottla.lake.verify(target, bootstrap=node.bootstrap)

    (problem,) = found.problems
    assert f"5 unreadable offsets: {bad.base_offset} to {bad.last_offset + 1} " in problem
    assert "could be read when they were loaded" in problem
    assert (found.rows, found.compared, found.only_in_lake) == (100, 95, 0)


def test_where_nothing_behind_the_damage_can_be_read(folder: Path, tmp_path: Path) -> None:
    """The last batch's length is wrong: a load fails with the option, too, and a proof says so."""
    target = str(tmp_path / "table")
    with ottla_broker(folder=folder) as node:
        fill(node)
        ottla.lake.load(TOPIC, target, bootstrap=node.bootstrap, runner=run_here)
        path = max(folder.glob(f"**/{TOPIC}-0/*.log"))
        content = bytearray(path.read_bytes())
        content[list(batches(bytes(content)))[-1][0] + LENGTH] ^= 0x40
        path.write_bytes(content)
        found = ottla.lake.verify(target, bootstrap=node.bootstrap)
        with pytest.raises(OttlaError, match="gives nothing behind it: restore"):
            ottla.lake.load(
                TOPIC,
                str(tmp_path / "other"),
                bootstrap=node.bootstrap,
                runner=run_here,
                skip_unreadable=True,
            )

    assert f"{TOPIC}-0 cannot be read from offset 95 on" in found.problems[0]


def test_on_spark_and_in_the_shell(spark: Any, folder: Path, tmp_path: Path) -> None:
    """The command's table has the column, and a line for the partition; so has the proof."""
    target = str(tmp_path / "table")
    ottla.lake.register(spark)
    with ottla_broker(folder=folder) as node:
        fill(node)
        bad = Segment(folder).flip(-2)
        where = ["--bootstrap", node.bootstrap]
        arguments = ["lake", "load", TOPIC, "--to", target, *where]
        refused = CliRunner().invoke(cli, arguments)
        assert refused.exit_code != 0
        done = CliRunner().invoke(cli, [*arguments, "--skip-unreadable"])
        header = next(line for line in done.output.splitlines() if line.startswith("partition"))
        terms = {"deleted", "unreadable", "absent", "unexplained"}
        assert terms <= set(header.split())
        line = f"{TOPIC}-0: 5 unreadable offsets: {bad.base_offset} to {bad.last_offset + 1} ("
        assert line in done.output
        proof = CliRunner().invoke(cli, ["lake", "verify", target, *where])
        assert (proof.exit_code, line in proof.output) == (0, True)

        options = {"subscribe": TOPIC, "kafka.bootstrap.servers": node.bootstrap}
        frame = spark.read.format("ottla").options(**options)
        with pytest.raises(Exception, match="cannot be read at offset"):
            frame.load().count()
        assert frame.option("skipUnreadable", "true").load().count() == 95
