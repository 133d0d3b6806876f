"""Reading the target: by one who follows while brokers die, and of everything in the end."""

import threading
import time
from collections.abc import Sequence

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from chaos.transactions.task import HEADER
from chaos.transactions.verdict import Copied
from rig.consumer import records_among

COMMITTED, EVERY = "read_committed", "read_uncommitted"
_PATIENCE_S = 300.0
_POLL_S = 0.2
_TOGETHER = 1000


class Reader:
    """Reads all partitions of a topic from their starts, and knows how far it has come."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, isolation: str) -> None:
        self.found: list[Copied] = []
        # The ends of partitions that it stood at; behind the last record there may be markers.
        self._reached = [0] * partitions
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])

    def step(self) -> None:
        """Take what has come. Raises AssertionError for an error that does not pass."""
        messages = self._consumer.consume(_TOGETHER, _POLL_S)
        self.found += map(_copied, records_among(filter(self._is_no_end, messages)))

    def read_to(self, ends: Sequence[int]) -> list[Copied]:
        """Everything below these offsets of the partitions; closes. Raises TimeoutError."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while any(at < end for at, end in zip(self._reached, ends, strict=True)):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"read to {self._reached} of {list(ends)}")
            self.step()
        self._consumer.close()
        return self.found

    def _is_no_end(self, message: Message) -> bool:
        error = message.error()
        if error is None or error.code() != KafkaError._PARTITION_EOF:
            return True
        self._reached[message.partition()] = message.offset()
        return False


class Follower:
    """A reader of committed records that reads in a thread until it is told to end."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._reader = Reader(bootstrap, topic, partitions, COMMITTED)
        self._ends = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def count(self) -> int:
        """How many records it has found. Raises what stopped it, if anything did."""
        if self._failure is not None:
            raise self._failure
        return len(self._reader.found)

    def end(self, ends: Sequence[int]) -> list[Copied]:
        """All it found, up to these offsets of the partitions."""
        self._ends.set()
        self._thread.join()
        self.count()
        return self._reader.read_to(ends)

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                self._reader.step()
        except Exception as failure:  # noqa: BLE001  It is told where somebody waits for it.
            self._failure = failure


def ends_when_decided(bootstrap: str, topic: str, partitions: int) -> list[int]:
    """The ends of all partitions, once no transaction is open in them. Raises TimeoutError."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            stable, every = (
                _ends(client, topic, partitions, isolation)
                for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            )
            if stable == every:
                return every
            said = f"committed up to {stable}, written up to {every}"
        except KafkaException as error:
            said = str(error)
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"transactions stay open: {said}")
        time.sleep(_POLL_S)


def _ends(client: AdminClient, topic: str, partitions: int, isolation: IsolationLevel) -> list[int]:
    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}
    answers = client.list_offsets(asked, isolation_level=isolation, request_timeout=30)
    return [answers[each].result(_PATIENCE_S).offset for each in asked]


def _copied(message: Message) -> Copied:
    names = [value for key, value in message.headers() or () if key == HEADER]
    return Copied(
        message.partition(),
        message.offset(),
        message.value(),
        names[0].decode() if names else None,
    )
