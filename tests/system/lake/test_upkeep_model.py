"""Any sequence of loads and upkeep leaves the rows that a model has, proven after each step."""

import random
from pathlib import Path

import duckdb
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rig.nodes import Node

import ottla.lake
from ottla.lake import run_here
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table
from tests.system.lake.kills.rounds import files_of
from tests.system.lake.test_replacement import MakeTopic

STEPS = 14
PARTITIONS = 2
Rows = dict[tuple[int, int], bytes]


class Model:
    """A topic, the table of it, and the rows that the table is to have."""

    def __init__(self, node: Node, topic: str, folder: Path, kind: Format, seed: int) -> None:
        self.chance = random.Random(seed)
        self._node, self._topic, self._folder, self._kind = node, topic, folder, kind
        self._written: Rows = {}
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._log_starts = dict.fromkeys(range(PARTITIONS), 0)
        self._loaded = dict.fromkeys(range(PARTITIONS), 0)
        self.rows: Rows = {}

    def load(self) -> str:
        producer = Producer({"bootstrap.servers": self._node.bootstrap, "log_level": 0})
        count = self.chance.randint(1, 40)
        for _ in range(count):
            partition = self.chance.randrange(PARTITIONS)
            value = self.chance.randbytes(20)
            self._written[partition, self._ends[partition]] = value
            self._ends[partition] += 1
            producer.produce(self._topic, value, partition=partition)
        assert producer.flush(120) == 0
        ottla.lake.load(
            *(self._topic, str(self._folder)),
            bootstrap=self._node.bootstrap,
            runner=run_here,
            format=self._kind,
        )
        for place, value in self._written.items():
            if place[1] >= self._loaded[place[0]]:
                self.rows[place] = value
        self._loaded = dict(self._ends)
        return f"load {count}"

    def compact(self) -> str:
        size = self.chance.choice([4_000, 12_000, 1 << 20])
        ottla.lake.compact(str(self._folder), target_size=size, master="here")
        return f"compact to {size}"

    def expire(self) -> str:
        keep = self.chance.randint(1, 6)
        ottla.lake.expire(str(self._folder), keep=keep)
        return f"expire but {keep}"

    def damage(self) -> str:
        """A live file is lost, or altered, and all of it read again."""
        files = existing_table(str(self._folder)).live_files()
        whole = [file for file in files if file.start >= self._log_starts[file.partition]]
        if not whole:
            return "no file to damage"
        file = self.chance.choice(whole)
        path = self._folder / file.path
        if self.chance.random() < 0.5:
            path.unlink()
        else:
            content = bytearray(path.read_bytes())
            content[self.chance.randrange(len(content))] ^= 1
            path.write_bytes(content)
        self._replace(file.partition, file.start, file.end, accept_loss=False)
        return f"damage and replace {file.partition}:{file.start}-{file.end}"

    def replace(self) -> str:
        partition = self.chance.randrange(PARTITIONS)
        low, high = self._log_starts[partition], self._loaded[partition]
        if low >= high:
            return "nothing to replace"
        start = self.chance.randrange(low, high)
        end = self.chance.randint(start + 1, high)
        self._replace(partition, start, end, accept_loss=False)
        return f"replace {partition}:{start}-{end}"

    def forget_and_replace(self) -> str:
        """Retention takes the beginning of a partition; what is replaced of it goes."""
        partition = self.chance.randrange(PARTITIONS)
        high = self._loaded[partition]
        if high < 2:
            return "nothing to forget"
        low = self.chance.randint(self._log_starts[partition], high - 1)
        admin = AdminClient({"bootstrap.servers": self._node.bootstrap, "log_level": 0})
        place = TopicPartition(self._topic, partition, low)
        admin.delete_records([place])[place].result(60)
        self._log_starts[partition] = low
        start, end = self.chance.randint(0, low), self.chance.randint(low + 1, high)
        self._replace(partition, start, end, accept_loss=True)
        for offset in range(start, low):
            self.rows.pop((partition, offset), None)
        return f"forget before {low}, replace {partition}:{start}-{end}"

    def _replace(self, partition: int, start: int, end: int, *, accept_loss: bool) -> None:
        ottla.lake.replace(
            *(self._topic, str(self._folder)),
            start=f"{partition}:{start}",
            end=f"{partition}:{end}",
            accept_loss=accept_loss,
            bootstrap=self._node.bootstrap,
            runner=run_here,
        )
        for offset in range(max(start, self._log_starts[partition]), end):
            self.rows[partition, offset] = self._written[partition, offset]

    def wrong(self) -> list[str]:
        """What differs in the table, by verify and by another program."""
        found = ottla.lake.verify(str(self._folder), bootstrap=self._node.bootstrap)
        query = 'select partition, "offset", value from read_parquet(?) order by all'
        rows = duckdb.execute(query, [files_of(self._folder, self._kind)]).fetchall()
        wanted = sorted((*place, value) for place, value in self.rows.items())
        differs = [] if rows == wanted else [f"{len(rows)} rows, and {len(wanted)} in the model"]
        return [*found.problems, *found.uncounted, *differs]


@pytest.mark.parametrize(("kind", "seed"), [("parquet", 1), ("delta", 2), ("iceberg", 3)])
def test_loads_and_upkeep_in_any_order_equal_the_model(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: Format, seed: int
) -> None:
    """Files are lost and mended, the topic forgets, versions expire: the rows are the model's."""
    folder = tmp_path / "table"
    model = Model(node, make_topic(node, partitions=PARTITIONS), folder, kind, seed)
    done = [model.load()]
    deeds = [
        *(model.load, model.load, model.compact, model.expire, model.replace),
        *(model.damage, model.forget_and_replace),
    ]
    for _ in range(STEPS):
        done.append(model.chance.choice(deeds)())
        assert model.wrong() == [], done
