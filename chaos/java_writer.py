"""Kafka's own Java producer, its words turned into a history: `python -m chaos.java_writer …`.

`VerifiableProducer` prints what was acknowledged and where. It does not say when it began to send
a record, so each counts as begun when the producer was: that can hide a wrong order, and cannot
invent one.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from ottla.testing.history.operation import Step
from ottla.testing.history.recorder import Recorder
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
    "linger.ms": "1",
}


class Translator:
    """Takes the tool's lines, and tells the recorder at the end, when it is known what was sent."""

    def __init__(self, name: str, recorder_file: Path) -> None:
        self._name = name
        self._file = recorder_file
        self._began_s = time.monotonic()
        # Of each acknowledged value its number, when it was told, and where it stands.
        self._told: dict[int, tuple[float, str, int]] = {}
        self._sent = 0

    def take(self, line: str) -> None:
        """One line of the tool's."""
        if not line.startswith("{"):
            return
        event = json.loads(line)
        if event["name"] == "producer_send_success":
            number = int(event["value"].partition(".")[2])
            where = f"{event['topic']}-{event['partition']}"
            self._told[number] = (time.monotonic(), where, event["offset"])
        elif event["name"] == "tool_data":
            self._sent = event["sent"]

    def write(self) -> None:
        """The whole history. What was not acknowledged may have been written, or not."""
        now_s = self._began_s

        def clock() -> float:
            return now_s

        with self._file.open("w", encoding="ascii") as file:
            recorder = Recorder(clock, file)
            for number in range(max(self._sent, max(self._told, default=-1) + 1)):
                value = f"{_PREFIX}.{number}"
                end_s, where, offset = self._told.get(number, (0.0, "", None))
                step = Step("send", where, None, value)
                now_s = self._began_s
                op = recorder.invoke(self._name, "send", steps=[step])
                if offset is not None:
                    now_s = end_s
                    recorder.ok(op, steps=[step._replace(offset=offset)])


def main() -> int:
    """Write as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--history", required=True)
    chosen = parser.parse_args()
    settings = Path(chosen.history).with_suffix(".properties")
    settings.write_text(properties(_SETTINGS))
    tool = subprocess.Popen(
        [
            *(str(java()), *_FLAGS, "-cp", class_path(KAFKA), VERIFIABLE_PRODUCER),
            *("--bootstrap-server", chosen.bootstrap, "--topic", chosen.topic),
            *("--throughput", str(chosen.rate), "--value-prefix", str(_PREFIX)),
            *("--acks", "-1", "--command-config", str(settings)),
        ],
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGTERM, lambda *_: tool.terminate())
    translator = Translator(chosen.name, Path(chosen.history))
    assert tool.stdout is not None
    for line in tool.stdout:
        translator.take(line)
    code = tool.wait()
    translator.write()
    # 143: ended by the SIGTERM that was asked for.
    return 0 if code in (0, 143, -signal.SIGTERM) else 1


if __name__ == "__main__":
    sys.exit(main())
