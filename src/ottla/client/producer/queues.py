"""Queues of batches per partition. Plain state; `Accumulator` and `Sender` change it."""

from collections import deque
from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode
from ottla.base.murmur2 import partition_of
from ottla.client.producer.delivery import Delivery
from ottla.record.builder import BatchBuilder

# In order; a mapping works if no name repeats. Text is sent as UTF-8.
Headers = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None]

# A broker recognises this many of a producer's last batches as duplicates.
KNOWN_AGAIN = 5


class Batch:
    """Records of one partition that are sent, and fail, together.

    `builder` holds the records as bytes; once the batch is encoded, `head` (its header) and
    `payload` (the rest) do.
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
        # (serial, first record): rises in the order of sending, and is kept on every retry. Parts
        # of a batch share its serial.
        self.order = order
        self.created_ms = created_ms
        self.reserved = reserved
        self.builder = BatchBuilder()
        # Both are final once the batch is closed; the size is that before compression.
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
        # A batch that was too large is replaced by parts, which settle it together.
        self.part_of: Batch | None = None
        self.parts_left = 0
        self.delivery = Delivery(topic, partition)

    def finish(self) -> None:
        """Close the batch for further records."""
        self.size = self.builder.size_estimate
        self.record_count = self.delivery.record_count = self.builder.record_count


class PartitionQueue:
    """The batches of one partition: an open one, closed ones, and those in flight."""

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
        # After a failure: one batch at a time until one succeeds, to keep the order.
        self.recovering = False
        # Whether the broker knows this producer, and so refuses a gap in the sequences.
        self.is_known = False
        # The last numbered batches, which the broker would recognise.
        self.window: deque[Batch] = deque(maxlen=KNOWN_AGAIN)

    @property
    def must_wait(self) -> bool:
        """Whether sending another numbered batch could reorder or duplicate an unanswered one.

        A broker without state of the producer accepts any sequence (KIP-360). So the first batch is
        sent alone until it is answered, or the second might be written before it. Later, a sixth
        batch would make the broker forget an unanswered one. A retry of that batch would look like
        a gap in the sequences, and in the end be written twice.
        """
        window = self.window
        if window and not self.is_known:
            return True
        if len(window) < KNOWN_AGAIN or window[0] not in self.in_flight:
            return False
        return self.closed[0] not in window


class TopicQueues:
    """The queues of one topic, and the partition for the next record without a key."""

    __slots__ = ("by_key", "name", "partitions", "sticky")

    KEYS_REMEMBERED = 1 << 16

    def __init__(self, name: str, partition_count: int, sticky: int) -> None:
        assert partition_count > 0
        self.name = name
        self.partitions = [PartitionQueue(name, index) for index in range(partition_count)]
        self.sticky = self.partitions[sticky]
        # A cache: hashing is the most expensive step of sending with a key, and keys repeat.
        self.by_key: dict[bytes, PartitionQueue] = {}

    def place(self, key: bytes) -> PartitionQueue:
        """Return the queue for a key, by murmur2 as Java's client does."""
        queue = self.partitions[partition_of(key, len(self.partitions))]
        if len(self.by_key) >= self.KEYS_REMEMBERED:
            self.by_key.clear()
        self.by_key[key] = queue
        return queue

    def grow(self, partition_count: int) -> None:
        """Add queues for new partitions of the topic; keys are hashed anew from now on."""
        known = len(self.partitions)
        if partition_count > known:
            self.partitions += [
                PartitionQueue(self.name, index) for index in range(known, partition_count)
            ]
            self.by_key.clear()
