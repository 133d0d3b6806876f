"""A real librdkafka producer that writes down what it was told: `python -m chaos.writer …`.

Idempotent, acks=all. It sends a burst to one partition, then one to the next; a burst is one
operation, or two: what was acknowledged, and of what nobody knows, where the library gave up.
SIGTERM ends it after the last answer.
"""

import functools
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from verify.history.operation import NEVER, Step

from chaos.histories import Histories
from chaos.task import HASTY, INTERRUPTED, PATIENT, Ending, Task, librdkafka_security, parsed_task

_CLOSING_S = 60.0
_PENDING_MAX = 20_000
_BURST_S = 0.02
_IMPATIENT: dict[str, str | int | bool] = {
    "delivery.timeout.ms": 50_000,
    "request.timeout.ms": 10_000,
    # Whom nothing is heard of is given up; the library asks for metadata this often, and so
    # learns that a leader was cut off and another one leads.
    "socket.timeout.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "socket.keepalive.enable": True,
}
# After a time in which nothing could be sent, this much is made up for.
_BACKLOG_S = 0.5


class _Burst:
    """Records sent to one partition at once, and what became of each."""

    def __init__(self, partition: str, values: list[str]) -> None:
        self.begin_s = time.monotonic()
        self.partition = partition
        self.values = values
        self.offsets: list[int | None] = [None] * len(values)
        self.left = len(values)

    def steps(self, *, acknowledged: bool) -> list[Step]:
        """Those that were, or those of which nobody knows."""
        return [
            Step("send", self.partition, offset, value)
            for value, offset in zip(self.values, self.offsets, strict=True)
            if (offset is not None) == acknowledged
        ]


class Writer:
    """Sends values that are told apart by the writer's name and a number."""

    def __init__(self, task: Task, histories: Histories) -> None:
        self._task = task
        self._histories = histories
        self._sent = 0
        self._pending: dict[_Burst, None] = {}
        self._pending_records = 0
        self._broken = False
        self._producer = self._connect()

    def run(self, ending: Ending) -> None:
        """Send in bursts of even size, until told to end."""
        size = 1 if self._task.alone else max(1, round(self._task.rate * _BURST_S))
        due_s, turn = time.monotonic(), 0
        while not ending.asked:
            if self._broken:
                self._producer.flush(0)
                self._producer = self._connect()
                self._broken = False
            if self._pending_records < _PENDING_MAX:
                self._send(turn % self._task.partitions, size)
                turn += 1
            due_s = max(due_s + size / self._task.rate, time.monotonic() - _BACKLOG_S)
            self._producer.poll(max(0.0, due_s - time.monotonic()))
        self._producer.flush(_CLOSING_S)
        for burst in list(self._pending):
            self._record(burst)

    def _send(self, partition: int, size: int) -> None:
        name = self._task.name
        values = [f"{name}.{self._sent + number}" for number in range(1, size + 1)]
        self._sent += size
        burst = _Burst(self._task.every_partition[partition], values)
        self._pending[burst] = None
        self._pending_records += size
        for number, value in enumerate(values):
            answered = functools.partial(self._answered, burst, number)
            try:
                self._producer.produce(
                    self._task.topic, value, partition=partition, on_delivery=answered
                )
            except (BufferError, KafkaException) as error:
                answered(error, None)

    def _answered(
        self, burst: _Burst, number: int, error: object | None, message: Message | None
    ) -> None:
        if error is None:
            assert message is not None
            burst.offsets[number] = message.offset()
        burst.left -= 1
        self._pending_records -= 1
        if burst.left == 0:
            self._record(burst)

    def _record(self, burst: _Burst) -> None:
        del self._pending[burst]
        if known := burst.steps(acknowledged=True):
            times_s = (burst.begin_s, time.monotonic())
            self._histories.record(burst.partition, "send", times_s, steps=known)
        if unknown := burst.steps(acknowledged=False):
            times_s = (burst.begin_s, NEVER)
            self._histories.record(burst.partition, "send", times_s, steps=unknown)

    def _connect(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._task.bootstrap,
                **librdkafka_security(),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0 if self._task.alone else 2,
                **_limits(self._task.name),
                "error_cb": self._on_error,
                # What became of each batch, and when and why it gave up a sequence of them, should
                # one stand twice or the producer end with a fatal error.
                "debug": "eos,msg",
                "log_level": 7,
            }
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._broken = True
            line = f"{time.strftime('%H:%M:%S')} {error.name()}: {error.str()}"
            print(f"fatal: {line}", flush=True)
            with (self._task.folder / f"{self._task.name}.fatal").open("a") as file:
                file.write(f"{line}\n")


def _limits(name: str) -> dict[str, str | int | bool]:
    """How long the writer of a name waits for what."""
    if name == PATIENT:
        return {}
    if name == INTERRUPTED:
        return {**_IMPATIENT, "socket.timeout.ms": 60_000}
    return {**_IMPATIENT, "delivery.timeout.ms": 2_000} if name == HASTY else _IMPATIENT


def main() -> int:
    """Write as the command line says."""
    task, ending = parsed_task(), Ending()
    histories = Histories(task.folder, task.name)
    Writer(task, histories).run(ending)
    histories.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
