"""Topics of four kinds, written by librdkafka; each knows what a right table may hold."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 2
KINDS = ("plain", "transactional", "compacted", "retention")
_KEYS = 40
_PATIENCE_S = 250

Row = tuple[int, int, bytes]  # Partition, offset, value.


@dataclass
class Topic:
    """A topic, and all that was acknowledged (of transactions: committed) so far."""

    bootstrap: str
    name: str
    kind: str
    chance: random.Random
    known: dict[tuple[int, int], bytes] = field(default_factory=dict)
    keys: dict[tuple[int, bytes], int] = field(default_factory=dict)  # Their latest offset.
    log_starts: dict[int, int] = field(default_factory=dict)
    number: int = 0

    @classmethod
    def made(cls, bootstrap: str, name: str, kind: str, seed: int) -> "Topic":
        """Create the topic."""
        config = {}
        if kind == "compacted":
            config = {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.01",
                "segment.ms": "1000",
            }
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config)])[name].result(60)
        return cls(bootstrap, name, kind, random.Random(seed))

    def write(self, count: int) -> None:
        """Send records; every third transaction is aborted, every fourth write deletes some."""
        errors: list[str] = []
        settings = {"bootstrap.servers": self.bootstrap, "log_level": 0, "linger.ms": 5}
        settings |= {"error_cb": lambda error: errors.append(str(error))}
        if self.kind == "transactional":
            settings |= {"transactional.id": self.name}
        producer = Producer(settings)
        delivered: list[tuple[int, int, bytes, bytes]] = []

        def keep(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            delivered.append(
                (message.partition(), message.offset(), message.key(), message.value())
            )

        is_aborted = False
        if self.kind == "transactional":
            producer.init_transactions(60)
            producer.begin_transaction()
            is_aborted = self.chance.random() < 0.33
        for _ in range(count):
            self.number += 1
            key = b"k%d" % self.chance.randrange(_KEYS)
            value = b"v%d-%d" % (self.number, self.chance.getrandbits(200))
            producer.produce(self.name, value, key, on_delivery=keep)
        left = producer.flush(_PATIENCE_S)
        assert left == 0, f"{left} records to {self.name} are not acknowledged: {errors[-5:]}"
        if self.kind == "transactional":
            (producer.abort_transaction if is_aborted else producer.commit_transaction)(60)
        for partition, offset, key, value in delivered if not is_aborted else ():
            self.known[partition, offset] = value
            self.keys[partition, key] = max(offset, self.keys.get((partition, key), -1))
        if self.kind == "retention" and self.chance.random() < 0.25:
            self._delete_some()

    def _delete_some(self) -> None:
        """Retention in a hurry: a part of the log goes, loaded or not."""
        ends = {p: 1 + max((o for q, o in self.known if q == p), default=-1) for p in range(2)}
        partition = self.chance.randrange(PARTITIONS)
        low = self.log_starts.get(partition, 0)
        start = self.chance.randint(low, max(low, ends[partition]))
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        place = TopicPartition(self.name, partition, start)
        for future in admin.delete_records([place]).values():
            future.result(60)
        self.log_starts[partition] = start

    def wrong(self, rows: list[Row]) -> list[str]:
        """What is lost, doubled or foreign in the rows of a table that has loaded all of it."""
        found = {(partition, offset): value for partition, offset, value in rows}
        problems = [f"{len(rows) - len(found)} rows are doubled"] if len(found) < len(rows) else []
        foreign = [place for place, value in found.items() if self.known.get(place) != value]
        lost = [place for place in self.known if place not in found and self._must_be_there(place)]
        problems += [f"foreign or altered: {sorted(foreign)[:5]}"] if foreign else []
        return problems + ([f"lost: {sorted(lost)[:5]} of {len(lost)}"] if lost else [])

    def _must_be_there(self, place: tuple[int, int]) -> bool:
        partition, offset = place
        if self.kind == "retention":
            return offset >= self.log_starts.get(partition, 0)
        if self.kind == "compacted":
            return offset in {o for (p, _), o in self.keys.items() if p == partition}
        return True


def ledgers_wrong(folder: Path) -> list[str]:
    """Offsets that a manifest does not account for, summed by plain Python."""
    terms = ("loaded", "control", "aborted", "compacted", "deleted", "unreadable", "absent")
    problems = []
    for path in sorted((folder / "_ottla" / "manifests").glob("*.json")):
        for one in json.loads(path.read_bytes())["ledgers"]:
            account = sum(one[term] for term in terms) + one.get("dead_letters", 0)
            if account != one["end"] - one["start"]:
                problems.append(f"{path.name} accounts for {account} offsets: {one}")
    return problems
