"""Batches that wait for their partitions. Plain state; `Accumulator` and `Sender` change it."""

from collections import deque
from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode
from ottla.base.murmur2 import partition_of
from ottla.client.producer.delivery import Delivery
from ottla.record.builder import BatchBuilder

# In their order; a mapping where no name comes twice. Text is sent as UTF-8.
Headers = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None]

# A broker recognises so many of a producer's last batches as duplicates.
KNOWN_AGAIN = 5


class Batch:
    """Records of one partition that are sent, and fail, together.

    `builder` holds the records as bytes; once the batch is encoded `head` and `payload` do, its
    header and what follows it.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "builder",
        "created_ms",
        "delivery",
        "head",
        "last_failure",
        "order",
        "part_of",
        "partition",
        "parts_left",
        "payload",
        "producer_epoch",
        "producer_id",
        "record_count",
        "reserved",
        "size",
        "topic",
    )

    def __init__(
        self, topic: str, partition: int, order: tuple[int, int], created_ms: int, reserved: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        # (serial, first record): rises in the order of sending, and stays through every retry.
        # Parts of a batch share its serial.
        self.order = order
        self.created_ms = created_ms
        self.reserved = reserved
        self.builder = BatchBuilder()
        # Both are known once nothing more goes in; the size is that before compression.
        self.size = 0
        self.record_count = 0
        self.attempts = 0
        self.last_failure: tuple[ErrorCode, str] | None = None
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        # Once encoded.
        self.head: bytearray | None = None
        self.payload = b""
        # A batch that was too large lives on as parts, which settle it together.
        self.part_of: Batch | None = None
        self.parts_left = 0
        self.delivery = Delivery(topic, partition)

    def finish(self) -> None:
        """Nothing more goes in."""
        self.size = self.builder.size_estimate
        self.record_count = self.delivery.record_count = self.builder.record_count


class PartitionQueue:
    """What waits for one partition: an open batch, closed ones, and those in flight."""

    __slots__ = (
        "closed",
        "epoch",
        "in_flight",
        "index",
        "is_known",
        "leader_in_flight",
        "next_sequence",
        "not_before_ms",
        "open",
        "producer_id",
        "recovering",
        "topic",
        "window",
    )

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.open: Batch | None = None
        self.closed: deque[Batch] = deque()
        # In the order sent.
        self.in_flight: deque[Batch] = deque()
        self.leader_in_flight = -1
        self.producer_id = -1
        self.epoch = 0
        self.next_sequence = 0
        self.not_before_ms = 0
        # After a failure: one batch at a time until one succeeds, so that order holds.
        self.recovering = False
        # Whether the broker has had a batch of this producer, and so refuses a gap behind it.
        self.is_known = False
        # The last that were numbered: those that the broker would know again.
        self.window: deque[Batch] = deque(maxlen=KNOWN_AGAIN)

    @property
    def must_wait(self) -> bool:
        """Whether one more numbered batch might be written before an unanswered one, or cost it.

        A broker without state of the producer takes any sequence (KIP-360): the first batch is
        alone until it is answered, or the second would stand before it. Later a sixth batch would
        make the broker forget an unanswered one: a retry of that would look like a gap in the
        sequences, and would be written twice.
        """
        window = self.window
        if window and not self.is_known:
            return True
        if len(window) < KNOWN_AGAIN or window[0] not in self.in_flight:
            return False
        return self.closed[0] not in window


class TopicQueues:
    """The queues of one topic, and where the next record without a key goes."""

    __slots__ = ("by_key", "name", "partitions", "sticky")

    KEYS_REMEMBERED = 1 << 16

    def __init__(self, name: str, partition_count: int, sticky: int) -> None:
        assert partition_count > 0
        self.name = name
        self.partitions = [PartitionQueue(name, index) for index in range(partition_count)]
        self.sticky = self.partitions[sticky]
        # Hashing is the most expensive step of a keyed send, and keys repeat.
        self.by_key: dict[bytes, PartitionQueue] = {}

    def place(self, key: bytes) -> PartitionQueue:
        """The queue for a key, by murmur2 as Java's client does."""
        queue = self.partitions[partition_of(key, len(self.partitions))]
        if len(self.by_key) >= self.KEYS_REMEMBERED:
            self.by_key.clear()
        self.by_key[key] = queue
        return queue

    def grow(self, partition_count: int) -> None:
        """Take up partitions added to the topic; keys are placed anew from now on."""
        known = len(self.partitions)
        if partition_count > known:
            self.partitions += [
                PartitionQueue(self.name, index) for index in range(known, partition_count)
            ]
            self.by_key.clear()
