"""A consumer group's only member, on librdkafka: `python -m chaos.member …`.

It reads, commits once a second, and whenever it is given its partitions (again) asks where the
group stands: never below what was committed.
"""

import argparse
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ottla.testing.history.operation import Step
from ottla.testing.history.recorder import Recorder

_GROUP = "chaos-group"
_COMMIT_INTERVAL_S = 1.0
_ANSWER_S = 10.0


class GroupMember:
    """Reads what the group gives it until told to end."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder) -> None:
        self._name = name
        self._recorder = recorder
        self._positions: dict[tuple[str, int], int] = {}
        self._steps: list[Step] = []
        self.ending = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": _GROUP,
                "group.instance.id": name,
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def run(self, topic: str) -> None:
        """Read and commit."""
        self._consumer.subscribe([topic], on_assign=self._assigned)
        due_s = time.monotonic() + _COMMIT_INTERVAL_S
        while not self.ending:
            self._poll()
            if time.monotonic() >= due_s:
                self._commit()
                due_s = time.monotonic() + _COMMIT_INTERVAL_S
        self._consumer.close()

    def _poll(self) -> None:
        """Up to a tenth of a second of records, one at a time: an assignment may come between."""
        until_s = time.monotonic() + 0.1
        while time.monotonic() < until_s:
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                break
            topic, number, offset = message.topic(), message.partition(), message.offset()
            value = message.value()
            assert topic is not None
            assert number is not None
            assert offset is not None
            assert isinstance(value, bytes)
            self._positions[topic, number] = offset + 1
            self._steps.append(Step("poll", f"{topic}-{number}", offset, value.decode()))
        self._tell()

    def _tell(self) -> None:
        if self._steps:
            op = self._recorder.invoke(self._name, "poll")
            self._recorder.ok(op, steps=self._steps)
            self._steps = []

    def _commit(self) -> None:
        if not self._positions:
            return
        offsets = [TopicPartition(t, n, offset) for (t, n), offset in self._positions.items()]
        told = {f"{t}-{n}": offset for (t, n), offset in self._positions.items()}
        op = self._recorder.invoke(self._name, "commit", group=_GROUP, offsets=told)
        try:
            answered = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self._recorder.info(op)
            print(f"{time.strftime('%H:%M:%S')} commit: {error}", flush=True)
            return
        refused = [str(found.error) for found in answered or () if found.error is not None]
        if refused:
            self._recorder.info(op)
            print(f"{time.strftime('%H:%M:%S')} commit: {refused}", flush=True)
        else:
            self._recorder.ok(op)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell()
        self._positions.clear()
        self._recorder.ok(self._recorder.invoke(self._name, "subscribe"))
        op = self._recorder.invoke(self._name, "committed", group=_GROUP)
        try:
            found = consumer.committed(partitions, _ANSWER_S)
        except KafkaException:
            self._recorder.info(op)
            return
        if any(partition.error is not None for partition in found):
            self._recorder.info(op)
            return
        told = {f"{p.topic}-{p.partition}": max(p.offset, 0) for p in found}
        self._recorder.ok(op, offsets=told)


def main() -> int:
    """Read as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--history", required=True)
    chosen = parser.parse_args()
    with open(chosen.history, "w", encoding="ascii", buffering=1) as file:
        member = GroupMember(chosen.name, chosen.bootstrap, Recorder(time.monotonic, file))

        def end(*_: object) -> None:
            member.ending = True

        signal.signal(signal.SIGTERM, end)
        member.run(chosen.topic)
    return 0


if __name__ == "__main__":
    sys.exit(main())
