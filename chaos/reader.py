"""A real librdkafka consumer that writes down what it reads: `python -m chaos.reader …`.

It follows all partitions from their start until SIGTERM.
"""

import sys
import time

from confluent_kafka import Consumer, TopicPartition
from verify.history.operation import Step

from chaos.histories import Histories
from chaos.task import Ending, Task, librdkafka_security, parsed_task

_BATCH = 2000


class Reader:
    """Reads partitions by assignment, from the first offset on."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.consumer = Consumer(
            {
                "bootstrap.servers": task.bootstrap,
                **librdkafka_security(),
                "group.id": task.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def begin(self, partitions: range) -> None:
        """Read these, from their start."""
        topic = self.task.topic
        self.consumer.assign([TopicPartition(topic, number, 0) for number in partitions])

    def poll(self, wait_s: float) -> list[Step]:
        """What there is, or comes in this time."""
        steps = []
        for message in self.consumer.consume(_BATCH, wait_s):
            if message.error() is not None:
                if message.error().retriable() or not message.error().fatal():
                    continue
                raise RuntimeError(str(message.error()))
            name = f"{message.topic()}-{message.partition()}"
            steps.append(Step("poll", name, message.offset(), message.value().decode()))
        return steps


def main() -> int:
    """Read as the command line says."""
    task, ending = parsed_task(), Ending()
    histories = Histories(task.folder, task.name)
    reader = Reader(task)
    reader.begin(range(task.partitions))
    while not ending.asked:
        begin_s = time.monotonic()
        steps = reader.poll(0.2)
        histories.record_reads((begin_s, time.monotonic()), steps)
    reader.consumer.close()
    histories.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
