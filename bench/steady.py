"""A librdkafka producer that sends a record every few milliseconds, in a process of its own.

`python -m bench.steady …` writes a line for each acknowledged record: the monotonic clock in
nanoseconds and the record's number. SIGTERM ends it after the last answer; its last line of
output is JSON.
"""

import argparse
import json
import signal
import sys
import time
from typing import IO

from confluent_kafka import KafkaError, Message, Producer

_CLOSING_S = 60.0
# It learns soon of a leader that is gone, moved, or silent.
FAST = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 10,
    # It ends its quick search with the first answer that names a leader, though that be the dead
    # one, if it asked sooner than brokers can know; the next search is this one.
    "topic.metadata.refresh.interval.ms": 200,
    "socket.timeout.ms": 1000,
}


class Steady:
    """Sends numbers to one partition, acks=all, idempotent."""

    def __init__(self, bootstrap: str, topic: str, partition: int, file: IO[str]) -> None:
        self._topic = topic
        self._partition = partition
        self._file = file
        self._acknowledged = 0
        self._failed: list[str] = []
        self.ending = False
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                **FAST,
                "request.timeout.ms": 500,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )

    def run(self, interval_s: float) -> dict[str, object]:
        """Send until told to end; what became of the records."""
        sent = 0
        due_s = time.monotonic()
        while not self.ending:
            self._producer.produce(
                self._topic, str(sent), partition=self._partition, on_delivery=self._answered
            )
            sent += 1
            due_s = max(due_s + interval_s, time.monotonic() - 1.0)
            while (left_s := due_s - time.monotonic()) > 0:
                self._producer.poll(left_s)
        unknown = self._producer.flush(_CLOSING_S)
        self._file.flush()
        return {
            "sent": sent,
            "acknowledged": self._acknowledged,
            "failed": len(self._failed) + unknown,
            "errors": sorted(set(self._failed)),
        }

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(str(error))
            return
        self._acknowledged += 1
        value = message.value()
        assert value is not None
        self._file.write(f"{time.monotonic_ns()} {value.decode()}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partition", type=int, default=0)
    parser.add_argument("--interval-ms", type=float, default=5.0)
    parser.add_argument("--acknowledged", required=True, help="The file for the lines.")
    chosen = parser.parse_args()
    with open(chosen.acknowledged, "w", encoding="ascii", buffering=1) as file:
        steady = Steady(chosen.bootstrap, chosen.topic, chosen.partition, file)

        def end(*_: object) -> None:
            steady.ending = True

        signal.signal(signal.SIGTERM, end)
        print(json.dumps(steady.run(chosen.interval_ms / 1000)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
