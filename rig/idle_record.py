"""The first record after a quiet time, while the brokers that follow its partition stand still."""

import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import Self

from confluent_kafka import KafkaError, Producer

from rig.clusters import Cluster, Member

_LOOK_EVERY_S = 0.01
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """What became of one record. Times are milliseconds since it was sent."""

    # When its acknowledgement or its error came, and the error's name.
    answered_ms: float
    error: str | None
    # When the followers went on, and how long each had stood still at most.
    back_ms: float
    paused_ms: float
    # The fewest replicas in sync that the leader told of, from before the pause until after it.
    least_in_sync: int

    @property
    def is_early(self) -> bool:
        """Whether the record was acknowledged while the leader alone could have it."""
        return self.error is None and self.answered_ms < self.back_ms


def leader_of(cluster: Cluster, topic: str) -> int:
    """The leader of a topic of one partition that is in sync."""
    return cluster.seen_by(min(cluster.members), [topic]).topics[topic][0].leader


class Sender:
    """A producer with acks=all that repeats nothing, so that each error is seen."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "acks": "all",
                "retries": 0,
                "linger.ms": 0,
                "message.timeout.ms": int(_PATIENCE_S * 1000),
                "request.timeout.ms": 60_000,
                "log_level": 0,
            }
        )

    def send(self, topic: str) -> tuple[float, str | None]:
        """Send one record and wait: when it was answered (monotonic seconds), and the error."""
        answers: list[tuple[float, str | None]] = []

        def on_answer(error: KafkaError | None, _message: object) -> None:
            answers.append((time.monotonic(), None if error is None else error.name()))

        self._producer.produce(topic, b"one", partition=0, on_delivery=on_answer)
        self._producer.flush(_PATIENCE_S)
        return answers[0] if answers else (time.monotonic(), "no answer")

    def wait(self, for_s: float) -> None:
        """Let the partitions idle."""
        time.sleep(for_s)

    def send_with_followers_paused(self, topic: str, for_s: float) -> FirstRecord:
        """Let all brokers but the leader stand still for `for_s` from just before the record."""
        leader = leader_of(self._cluster, topic)
        others = [m for m in self._cluster.members.values() if m.number != leader]
        with _IsrWatch(self._cluster, leader, topic) as watch:
            stopped_s = time.monotonic()
            back = Event()
            resumed: list[float] = []
            for member in others:
                member.pause()
            try:
                sent_s = time.monotonic()
                waker = Thread(target=_resume, args=(others, sent_s + for_s, resumed, back))
                waker.start()
                answered_s, error = self.send(topic)
                back.wait(_PATIENCE_S)
                waker.join()
            finally:
                for member in others:
                    member.resume()
            time.sleep(0.3)
        back_s = resumed[0]
        return FirstRecord(
            (answered_s - sent_s) * 1000,
            error,
            (back_s - sent_s) * 1000,
            (resumed[-1] - stopped_s) * 1000,
            watch.least,
        )


def _resume(members: list[Member], at_s: float, resumed: list[float], back: Event) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))
    resumed.append(time.monotonic())
    for member in members:
        member.resume()
    resumed.append(time.monotonic())
    back.set()


class _IsrWatch:
    """Asks the leader for the ISR all the time."""

    def __init__(self, cluster: Cluster, leader: int, topic: str) -> None:
        self._cluster = cluster
        self._leader = leader
        self._topic = topic
        self._is_over = Event()
        self._thread = Thread(target=self._watch)
        self.least = len(cluster.members)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._look()
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        seen = self._cluster.seen_by(self._leader, [self._topic]).topics[self._topic][0]
        self.least = min(self.least, len(seen.isr))
