"""One run: records in, copiers at work, brokers and copiers killed in turn, and what came out."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.transactions.target_reader import (
    COMMITTED,
    EVERY,
    Follower,
    Reader,
    ends_when_decided,
)
from chaos.transactions.task import CopyTask, read_notes
from chaos.transactions.verdict import Verdict, judge
from chaos.transactions.workers import JAVA, Workers
from rig.clusters import Cluster

_PARTITIONS = 4
_PATIENCE_S = 120.0
_AWAY_S = 2.0
# Of a pair, the first stays away while the second starts again, and longer.
_LONG_AWAY_S = 15.0
_POLL_S = 0.1
_INTERNAL = ("__transaction_state", "__consumer_offsets")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: so many records passed on by copiers of a kind, so many kills of both sorts.

    With `pairs`, two brokers are killed each time, of which one starts while the other is dead.
    After `stuck_s` without a record the copiers are replaced, and after `lost_s` nothing will come.
    """

    kind: str
    records: int
    kills: int
    seed: int = 1
    copiers: int = 2
    size: int = 50
    aborts: int = 10
    pairs: bool = False
    # librdkafka's `metadata.recovery.strategy`.
    recovery: str = "rebootstrap"
    stuck_s: float = 120.0
    lost_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `pause_s` is the longest time in which no record came out."""

    plan: Plan
    verdict: Verdict
    brokers_killed: int
    copiers_killed: int
    copiers_gave_up: int
    copiers_stuck: int
    seconds: float
    pause_s: float


class Run:
    """One plan, carried out on a cluster that is whole."""

    def __init__(
        self, plan: Plan, cluster: Cluster, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._say = say
        self._chance = random.Random(plan.seed)
        stem = f"{plan.kind}-{plan.seed}-{time.time_ns() // 1_000_000}"
        self._folder = folder / stem
        self._folder.mkdir(parents=True)
        self._source, self._target = f"{stem}-in", f"{stem}-out"
        self._values = [b"%d" % number for number in range(plan.records)]
        self._workers = Workers({task.name: task for task in self._tasks(stem)})
        self._brokers_killed = 0
        self._pause_s = 0.0

    def run(self) -> Outcome:
        """Raises TimeoutError where nothing goes on any more."""
        began_s = time.monotonic()
        self._make_topics()
        follower = Follower(self._cluster.bootstrap, self._target, _PARTITIONS)
        try:
            self._break(follower)
            self._wait(follower, self._plan.records)
            self._say("all has come; to its end")
        finally:
            self._workers.stop()
        seconds = time.monotonic() - began_s
        self._wait_until_whole()
        return Outcome(
            self._plan,
            self._judge(follower),
            self._brokers_killed,
            self._workers.killed,
            self._workers.gave_up,
            self._workers.stuck,
            seconds,
            self._pause_s,
        )

    def _break(self, follower: Follower) -> None:
        """Kill a broker and a copier in each part of the records, while that is passed on."""
        parts = self._plan.kills + 1
        bounds = [len(self._values) * part // parts for part in range(parts + 1)]
        # Kafka's tool ends when it has passed on what it found.
        at_once = parts if self._plan.kind == JAVA else 1
        self._feed(self._values[: bounds[at_once]])
        for part in range(1, parts):
            if part >= at_once:
                # There is always something to do.
                self._feed(self._values[bounds[part] : bounds[part + 1]])
            half = (bounds[part] - bounds[part - 1]) // 2
            self._wait(follower, bounds[part - 1] + half)
            self._say(f"{follower.count()} of {self._plan.records} records have come")
            self._wait_until_whole()
            backs = self._kill_brokers()
            try:
                self._wait(follower, bounds[part - 1] + half + half // 2)
                self._workers.kill(f"copier{self._chance.randrange(self._plan.copiers)}")
                self._wait(follower, bounds[part])
            finally:
                # No broker starts after the run has ended.
                for back in backs:
                    back.join()

    def _kill_brokers(self) -> list[threading.Timer]:
        """Kill a broker, or two; return the timers that start them again."""
        first, second, *_ = self._chance.sample(list(self._cluster.members.values()), 3)
        away = (
            [(first, _LONG_AWAY_S), (second, _AWAY_S)] if self._plan.pairs else [(first, _AWAY_S)]
        )
        backs = []
        for victim, away_s in away:
            victim.kill()
            self._brokers_killed += 1
            backs.append(threading.Timer(away_s, victim.start))
            backs[-1].start()
        return backs

    def _wait(self, follower: Follower, count: int) -> None:
        """Until so many records have come."""
        seen, last_s, replaced = follower.count(), time.monotonic(), 0
        while seen < count:
            self._workers.look()
            time.sleep(_POLL_S)
            now_s = time.monotonic()
            if (found := follower.count()) > seen:
                seen, last_s, replaced = found, now_s, 0
            pause_s = now_s - last_s
            self._pause_s = max(self._pause_s, pause_s)
            if pause_s > self._plan.stuck_s * (replaced + 1):
                replaced += 1
                self._say(f"no record has come for {pause_s:.0f} s: all copiers are replaced")
                self._workers.replace()
            if pause_s > self._plan.lost_s:
                raise TimeoutError(
                    f"no record has come for {pause_s:.0f} s, after {seen} of "
                    f"{self._plan.records}; the copiers' words are in {self._folder}:\n"
                    f"{self._workers.last_words()}"
                )

    def _wait_until_whole(self) -> None:
        self._cluster.wait_until(
            lambda: len(self._cluster.running) == len(self._cluster.members), "all brokers"
        )
        self._cluster.wait_until_formed()
        for topic in (self._source, self._target, *_INTERNAL):
            self._cluster.wait_until_in_sync(topic)

    def _judge(self, follower: Follower) -> Verdict:
        bootstrap = self._cluster.bootstrap
        ends = ends_when_decided(bootstrap, self._target, _PARTITIONS)
        committed, every = (
            Reader(bootstrap, self._target, _PARTITIONS, isolation).read_to(ends)
            for isolation in (COMMITTED, EVERY)
        )
        notes = read_notes(self._folder)
        return judge(self._values, committed, follower.end(ends), len(every), notes)

    def _make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
        for name in (self._source, self._target):
            new = NewTopic(name, _PARTITIONS, 3, config={"min.insync.replicas": "2"})
            admin.create_topics([new])[name].result(_PATIENCE_S)
            self._cluster.wait_until_in_sync(name)

    def _feed(self, values: Sequence[bytes]) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        failures: list[object] = []

        def on_delivery(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for value in values:
            place = int(value) % _PARTITIONS
            producer.produce(self._source, value, partition=place, on_delivery=on_delivery)
            producer.poll(0)
        left = producer.flush(_PATIENCE_S)
        assert not left, f"{left} records did not come into {self._source}"
        assert not failures, failures[:3]

    def _tasks(self, group: str) -> list[CopyTask]:
        plan = self._plan
        return [
            CopyTask(
                f"copier{number}",
                plan.kind,
                self._cluster.bootstrap,
                group,
                self._source,
                self._target,
                _PARTITIONS,
                plan.size,
                plan.aborts,
                self._folder,
                plan.recovery,
            )
            for number in range(plan.copiers)
        ]
