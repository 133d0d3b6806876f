"""The last word on what a log holds: `python -m chaos.final_reader …` reads it from end to end.

One partition after the other, each up to the end that it has then.
"""

import sys
import time

from confluent_kafka import KafkaException, TopicPartition
from verify.history.operation import Step

from chaos.histories import Histories
from chaos.reader import Reader
from chaos.task import parsed_task

_PATIENCE_S = 60.0


def read_all(reader: Reader, number: int) -> tuple[list[Step], int]:
    """All records of one partition, and its end. Raises TimeoutError where none come."""
    end = _end_of(reader, TopicPartition(reader.task.topic, number))
    steps: list[Step] = []
    reader.begin(range(number, number + 1))
    deadline_s = time.monotonic() + _PATIENCE_S
    while end > 0 and (not steps or (steps[-1].offset or 0) + 1 < end):
        if found := reader.poll(0.5):
            deadline_s = time.monotonic() + _PATIENCE_S
        steps += found
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"partition {number} could not be read to its end {end}")
    return [step for step in steps if (step.offset or 0) < end], end


def _end_of(reader: Reader, partition: TopicPartition) -> int:
    """Where it ends, asked again while its leader moves. Raises KafkaException."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return int(reader.consumer.get_watermark_offsets(partition, 30)[1])
        except KafkaException:
            if time.monotonic() > deadline_s:
                raise
        time.sleep(0.1)


def main() -> int:
    """Read as the command line says."""
    task = parsed_task()
    histories = Histories(task.folder, task.name)
    reader = Reader(task)
    for number, partition in enumerate(task.every_partition):
        begin_s = time.monotonic()
        steps, end = read_all(reader, number)
        times_s = (begin_s, time.monotonic())
        histories.record(partition, "final", times_s, steps=steps, offsets={partition: end})
    reader.consumer.close()
    histories.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
