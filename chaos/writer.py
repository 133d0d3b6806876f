"""A real librdkafka producer that writes down what it was told: `python -m chaos.writer …`.

Idempotent, acks=all. Each record is an operation; its history line ends `ok` with the offset,
or `info` where the library gave up and nobody knows. SIGTERM ends it after the last answer.
"""

import argparse
import signal
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ottla.testing.history.operation import Step
from ottla.testing.history.recorder import Recorder

_CLOSING_S = 60.0
_PENDING_MAX = 20_000


class Writer:
    """Sends values that are told apart by the writer's name and a number."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder) -> None:
        self._name = name
        self._bootstrap = bootstrap
        self._recorder = recorder
        self._sent = 0
        self._pending = 0
        self._broken = False
        self.ending = False
        self._producer = self._connect()

    def run(self, topic: str, partitions: int, rate: int) -> None:
        """Send `rate` records a second, evenly, until told to end."""
        due_s = time.monotonic()
        while not self.ending:
            if self._broken:
                self._producer.flush(0)
                self._producer = self._connect()
                self._broken = False
            if self._pending < _PENDING_MAX:
                self._send(topic, self._sent % partitions)
            self._producer.poll(0)
            due_s = max(due_s + 1 / rate, time.monotonic() - 1.0)
            if (pause_s := due_s - time.monotonic()) > 0:
                self._producer.poll(pause_s)
        self._producer.flush(_CLOSING_S)

    def _send(self, topic: str, partition: int) -> None:
        self._sent += 1
        value = f"{self._name}.{self._sent}"
        step = Step("send", f"{topic}-{partition}", None, value)
        op = self._recorder.invoke(self._name, "send", steps=[step])
        self._pending += 1

        def answered(error: KafkaError | None, message: Message) -> None:
            self._pending -= 1
            if error is not None:
                self._recorder.info(op)
            else:
                self._recorder.ok(op, steps=[step._replace(offset=message.offset())])

        try:
            self._producer.produce(topic, value, partition=partition, on_delivery=answered)
        except (BufferError, KafkaException):
            self._pending -= 1
            self._recorder.info(op)

    def _connect(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "delivery.timeout.ms": 50_000,
                "request.timeout.ms": 10_000,
                # Whom nothing is heard of is given up; the library asks for metadata this often,
                # and so learns that a leader is cut off.
                "socket.timeout.ms": 1_000,
                "topic.metadata.refresh.interval.ms": 1_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "socket.keepalive.enable": True,
                "error_cb": self._on_error,
                "log_level": 0,
            }
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._broken = True


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
    with open(chosen.history, "w", encoding="ascii", buffering=1) as file:
        writer = Writer(chosen.name, chosen.bootstrap, Recorder(time.monotonic, file))

        def end(*_: object) -> None:
            writer.ending = True

        signal.signal(signal.SIGTERM, end)
        writer.run(chosen.topic, chosen.partitions, chosen.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
