"""A real librdkafka consumer that writes down what it reads: `python -m chaos.reader …`.

It follows all partitions from their start until SIGTERM. With `--final` it reads each up to the
end it has at the start, and ends: the last word on what the log holds.
"""

import argparse
import signal
import sys
import time

from confluent_kafka import Consumer, TopicPartition

from ottla.testing.history.operation import Step
from ottla.testing.history.recorder import Recorder

_PATIENCE_S = 60.0
_BATCH = 500


class Reader:
    """Reads partitions by assignment, from the first offset on."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder) -> None:
        self._name = name
        self._recorder = recorder
        self.ending = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
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

    def follow(self, topic: str, partitions: int) -> None:
        """Poll until told to end; each poll that brings records is an operation."""
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        while not self.ending:
            steps = self._poll(0.2)
            if steps:
                op = self._recorder.invoke(self._name, "poll")
                self._recorder.ok(op, steps=steps)
        self._consumer.close()

    def read_all(self, topic: str, partitions: int) -> None:
        """Read every partition up to its present end. Raises TimeoutError."""
        ends = {}
        for number in range(partitions):
            partition = TopicPartition(topic, number)
            ends[f"{topic}-{number}"] = self._consumer.get_watermark_offsets(partition, 30)[1]
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        op = self._recorder.invoke(self._name, "final")
        steps: list[Step] = []
        missing = {name for name, end in ends.items() if end > 0}
        deadline_s = time.monotonic() + _PATIENCE_S
        while missing:
            found = self._poll(0.5)
            if found:
                deadline_s = time.monotonic() + _PATIENCE_S
            for step in found:
                assert step.offset is not None
                if step.offset + 1 >= ends[step.partition]:
                    missing.discard(step.partition)
            steps += found
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{sorted(missing)} could not be read to the end")
        within = [step for step in steps if (step.offset or 0) < ends[step.partition]]
        self._recorder.ok(op, steps=within, offsets=ends)
        self._consumer.close()

    def _poll(self, wait_s: float) -> list[Step]:
        steps = []
        for message in self._consumer.consume(_BATCH, wait_s):
            if message.error() is not None:
                if message.error().retriable() or not message.error().fatal():
                    continue
                raise RuntimeError(str(message.error()))
            name = f"{message.topic()}-{message.partition()}"
            steps.append(Step("poll", name, message.offset(), message.value().decode()))
        return steps


def main() -> int:
    """Read as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--history", required=True)
    parser.add_argument("--final", action="store_true")
    chosen = parser.parse_args()
    with open(chosen.history, "w", encoding="ascii", buffering=1) as file:
        reader = Reader(chosen.name, chosen.bootstrap, Recorder(time.monotonic, file))
        if chosen.final:
            reader.read_all(chosen.topic, chosen.partitions)
            return 0

        def end(*_: object) -> None:
            reader.ending = True

        signal.signal(signal.SIGTERM, end)
        reader.follow(chosen.topic, chosen.partitions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
