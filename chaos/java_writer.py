"""Kafka's own Java producer, its words turned into a history: `python -m chaos.java_writer …`.

`VerifiableProducer` prints what was acknowledged and where. It does not say when it began to send
a record, so each counts as begun when the producer was: that can hide a wrong order, and cannot
invent one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from array import array

from verify.history.operation import NEVER, Step

from chaos.histories import Histories
from chaos.task import Task, parsed_task
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.client.connection.security import read_config
from rig.jars import KAFKA, class_path
from rig.java import java
from rig.nodes import properties
from rig.tools import VERIFIABLE_PRODUCER

_FLAGS = ("-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What the values begin with; the tool wants a number.
_PREFIX = 7
# The tool's own default is not to retry.
_SETTINGS = {
    "enable.idempotence": "true",
    "retries": "2147483647",
    "delivery.timeout.ms": "50000",
    "request.timeout.ms": "10000",
    "retry.backoff.ms": "20",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "500",
    "linger.ms": "10",
}
# Acknowledged records that make one operation.
_TOGETHER = 20


class Translator:
    """Collects the tool's output; at the end, when all sends are known, records them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._began_s = time.monotonic()
        # By the value's number: when it was acknowledged, its partition, its offset.
        self._ends_s = array("d")
        self._partitions = array("i")
        self._offsets = array("q")

    def take(self, line: str) -> None:
        """One line of the tool's."""
        if not line.startswith("{"):
            return
        event = json.loads(line)
        if event["name"] == "producer_send_success":
            number = int(event["value"].partition(".")[2])
            self._grow(number + 1)
            self._ends_s[number] = time.monotonic()
            self._partitions[number] = event["partition"]
            self._offsets[number] = event["offset"]
        elif event["name"] == "tool_data":
            self._grow(event["sent"])

    def write(self, histories: Histories) -> None:
        """The whole history. What was not acknowledged may have been written, or not."""
        waiting: list[list[int]] = [[] for _ in range(self._task.partitions)]
        for number, end_s in enumerate(self._ends_s):
            if end_s == NEVER:
                # Nobody knows where to: it may have been any partition.
                for partition in self._task.every_partition:
                    step = Step("send", partition, None, _value(number))
                    histories.record(partition, "send", (self._began_s, NEVER), steps=[step])
                continue
            numbers = waiting[self._partitions[number]]
            numbers.append(number)
            if len(numbers) == _TOGETHER:
                self._record(histories, numbers)
        for numbers in filter(None, waiting):
            self._record(histories, numbers)

    def _record(self, histories: Histories, numbers: list[int]) -> None:
        part = self._task.every_partition[self._partitions[numbers[0]]]
        steps = [Step("send", part, self._offsets[number], _value(number)) for number in numbers]
        end_s = max(self._ends_s[number] for number in numbers)
        histories.record(part, "send", (self._began_s, end_s), steps=steps)
        numbers.clear()

    def _grow(self, size: int) -> None:
        more = size - len(self._ends_s)
        if more > 0:
            self._ends_s.extend([NEVER] * more)
            self._partitions.extend([0] * more)
            self._offsets.extend([0] * more)


def _value(number: int) -> str:
    return f"{_PREFIX}.{number}"


def main() -> int:
    """Write as the command line says."""
    task = parsed_task()
    settings = task.folder / f"{task.name}.properties"
    given = os.environ.get(CONFIG_VARIABLE)
    settings.write_text(properties({**_SETTINGS, **(read_config(given) if given else {})}))
    tool = subprocess.Popen(
        [
            *(str(java()), *_FLAGS, "-cp", class_path(KAFKA), VERIFIABLE_PRODUCER),
            *("--bootstrap-server", task.bootstrap, "--topic", task.topic),
            *("--throughput", str(task.rate), "--value-prefix", str(_PREFIX)),
            *("--acks", "-1", "--command-config", str(settings)),
        ],
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGTERM, lambda *_: tool.terminate())
    translator = Translator(task)
    assert tool.stdout is not None
    for line in tool.stdout:
        translator.take(line)
    code = tool.wait()
    histories = Histories(task.folder, task.name)
    translator.write(histories)
    histories.close()
    # 143: ended by the SIGTERM that was asked for.
    return 0 if code in (0, 143, -signal.SIGTERM) else 1


if __name__ == "__main__":
    sys.exit(main())
