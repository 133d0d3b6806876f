"""A consumer group's only member, on librdkafka: `python -m chaos.member …`.

It reads, commits once a second, and whenever it is given its partitions (again) asks where the
group stands: never below what was committed.
"""

import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition
from verify.history.operation import NEVER, Step

from chaos.histories import GROUP, Histories
from chaos.task import Ending, Task, librdkafka_security, parsed_task

_GROUP = "chaos-group"
_COMMIT_INTERVAL_S = 1.0
_ANSWER_S = 10.0


class GroupMember:
    """Reads what the group gives it until told to end."""

    def __init__(self, task: Task, histories: Histories) -> None:
        self._task = task
        self._histories = histories
        self._positions: dict[tuple[str, int], int] = {}
        self._steps: list[Step] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": task.bootstrap,
                **librdkafka_security(),
                "group.id": _GROUP,
                "group.instance.id": task.name,
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

    def run(self, ending: Ending) -> None:
        """Read and commit."""
        self._consumer.subscribe([self._task.topic], on_assign=self._assigned)
        due_s = time.monotonic() + _COMMIT_INTERVAL_S
        while not ending.asked:
            self._poll()
            if time.monotonic() >= due_s:
                self._commit()
                due_s = time.monotonic() + _COMMIT_INTERVAL_S
        self._consumer.close()

    def _poll(self) -> None:
        """Up to a tenth of a second of records, one at a time: an assignment may come between."""
        begin_s = time.monotonic()
        while time.monotonic() < begin_s + 0.1:
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
        self._record(begin_s)

    def _record(self, begin_s: float) -> None:
        self._histories.record_reads((begin_s, time.monotonic()), self._steps)
        self._steps = []

    def _commit(self) -> None:
        if not self._positions:
            return
        offsets = [TopicPartition(t, n, offset) for (t, n), offset in self._positions.items()]
        at = {f"{t}-{n}": offset for (t, n), offset in self._positions.items()}
        begin_s = time.monotonic()
        refused: object = None
        try:
            answered = self._consumer.commit(offsets=offsets, asynchronous=False)
            refused = [str(found.error) for found in answered or () if found.error is not None]
        except KafkaException as error:
            refused = error
        if refused:
            print(f"{time.strftime('%H:%M:%S')} commit: {refused}", flush=True)
        end_s = NEVER if refused else time.monotonic()
        self._histories.record(GROUP, "commit", (begin_s, end_s), group=_GROUP, offsets=at)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._record(time.monotonic())
        begin_s = time.monotonic()
        self._positions.clear()
        for partition in self._task.every_partition:
            self._histories.record(partition, "subscribe", (begin_s, begin_s))
        try:
            found = consumer.committed(partitions, _ANSWER_S)
        except KafkaException:
            return
        if any(partition.error is not None for partition in found):
            return
        at = {f"{p.topic}-{p.partition}": max(p.offset, 0) for p in found}
        times_s = (begin_s, time.monotonic())
        self._histories.record(GROUP, "committed", times_s, group=_GROUP, offsets=at)


def main() -> int:
    """Read as the command line says."""
    task, ending = parsed_task(), Ending()
    histories = Histories(task.folder, task.name)
    GroupMember(task, histories).run(ending)
    histories.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
