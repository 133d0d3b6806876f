"""A fetch of one partition that a consumer repeats: recognises it, and creates its answer."""

from struct import Struct
from typing import Final

from ottla.base.errors import OttlaError
from ottla.base.varint import append_unsigned
from ottla.broker.fetch.read import as_part
from ottla.broker.fetch.sessions import FetchSession, PartitionKey, Remembered, WantedPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.usage.table import UsageEntry
from ottla.wire.api import ApiKey
from ottla.wire.codec import encode
from ottla.wire.frames import (
    AFTER_CORRELATION_ID,
    CORRELATION_POSITION,
    Part,
    encode_response,
)
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.notation import has_field
from ottla.wire.parts import FileRegion

_READ_COMMITTED: Final = 1
# The size of the frame, and the correlation id.
_HEAD: Final = Struct(">ii")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
# High watermark, last stable offset and log start offset, in the order of the response.
_NUMBERS: Final = Struct(">qqq")
# Placeholder numbers that occur nowhere else in a message.
_MARKS = (0x6F74746C61010101, 0x6F74746C61020202, 0x6F74746C61030303)
_EPOCH_MARK: Final = 0x6F740404


class KnownFetch:
    """A fetch of one partition in which only correlation id, session epoch and offset change."""

    __slots__ = (
        "_after_epoch",
        "_after_offset",
        "_answer_head",
        "_answer_tail",
        "_before_epoch",
        "_epoch_position",
        "_is_flexible",
        "_numbers_position",
        "_offset_position",
        "_wanted",
        "committed",
        "head",
        "key",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "partition",
        "remembered",
        "request_type",
        "session",
        "size",
        "use",
        "version",
    )

    def __init__(
        self,
        frame: bytes,
        version: int,
        body: FetchRequest,
        max_bytes: int,
        partition: Partition,
        session: FetchSession | None,
        use: UsageEntry,
    ) -> None:
        """Learn the fetch. `body` was decoded from `frame`; it and `session` have one partition.

        Raises ValueError if the frame has unknown tagged fields, or if the numbers are not adjacent
        in the response. Raises VersionError if the response does not have this version.
        """
        asked = body.topics[0].partitions[0]
        self.partition = partition
        # Counts the bytes that the client fetches from the topic.
        self.use = use
        self.session = session
        self.remembered: Remembered | None = None
        topic = body.topics[0]
        has_topic_ids = has_field(type(topic), "topic_id", version)
        name = topic.topic_id if has_topic_ids else topic.topic
        self.key = PartitionKey(name, asked.partition)
        if session is not None:
            (self.remembered,) = session.partitions.values()
        self.request_type = type(body)
        self.committed = body.isolation_level == _READ_COMMITTED
        self.version = version
        self.min_bytes = body.min_bytes
        self.max_wait_ms = body.max_wait_ms
        self.max_bytes = min(max_bytes, asked.partition_max_bytes)
        self._wanted = WantedPartition(
            0, asked.partition_max_bytes, asked.current_leader_epoch, asked.last_fetched_epoch
        )
        self._is_flexible = version >= type(body).__flexible__
        self._learn_request(frame, version, body)
        self._learn_answer(version, body)

    def _learn_request(self, frame: bytes, version: int, body: FetchRequest) -> None:
        asked = body.topics[0].partitions[0]
        as_sent = encode(body, version)
        if not frame.endswith(as_sent):
            raise ValueError("the request has fields that are not known")
        asked.fetch_offset, body.session_epoch = _MARKS[0], _EPOCH_MARK
        marked = encode(body, version)
        start = len(frame) - len(marked)
        epoch = self._epoch_position = start + marked.index(_INT32.pack(_EPOCH_MARK))
        offset = self._offset_position = start + marked.index(_INT64.pack(_MARKS[0]))
        self.size = len(frame)
        self.head = frame[:CORRELATION_POSITION]
        self._before_epoch = frame[AFTER_CORRELATION_ID:epoch]
        self._after_epoch = frame[epoch + _INT32.size : offset]
        self._after_offset = frame[offset + _INT64.size :]

    def _learn_answer(self, version: int, body: FetchRequest) -> None:
        topic, index = body.topics[0], body.topics[0].partitions[0].partition
        answer = PartitionData(
            partition_index=index,
            high_watermark=_MARKS[0],
            last_stable_offset=_MARKS[1],
            log_start_offset=_MARKS[2],
            # read_committed consumers get a list even if it is empty.
            aborted_transactions=[] if self.committed else None,
            records=FileRegion(0, 0, 0),
        )
        response = FetchResponse(
            session_id=0 if self.session is None else self.session.id,
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=[answer]
                )
            ],
        )
        parts = encode_response(response, ApiKey.FETCH, version, 0)
        place = next(at for at, part in enumerate(parts) if isinstance(part, FileRegion))
        before, after = parts[:place], parts[place + 1 :]
        # If there are records, the length of their size field differs.
        size_bytes = 1 if self._is_flexible else _INT32.size
        self._answer_head = _joined(before)[:-size_bytes]
        self._answer_tail = _joined(after)
        self._numbers_position = self._answer_head.index(_NUMBERS.pack(*_MARKS))

    # Hot: once per fetch.
    def matches(self, frame: bytes) -> bool:
        """Return whether a frame of the same size is the same fetch, from any offset."""
        epoch, offset = self._epoch_position, self._offset_position
        return (
            frame[offset + 8 :] == self._after_offset
            and frame[epoch + 4 : offset] == self._after_epoch
            and frame[AFTER_CORRELATION_ID:epoch] == self._before_epoch
            and frame[:CORRELATION_POSITION] == self.head
        )

    def epoch_of(self, frame: bytes) -> int:
        """Return the session epoch in a frame."""
        (epoch,) = _INT32.unpack_from(frame, self._epoch_position)
        return int(epoch)

    def offset_of(self, frame: bytes) -> int:
        """Return the fetch offset in a frame."""
        (offset,) = _INT64.unpack_from(frame, self._offset_position)
        return int(offset)

    def fits(self, session: FetchSession | None) -> bool:
        """Return whether the session is still the learnt one, with only this partition."""
        if session is not self.session:
            return False
        return session is None or list(session.partitions.values()) == [self.remembered]

    def fits_leader(self) -> bool:
        """Return whether this broker leads the partition in the leader epoch of the request."""
        epoch = self._wanted.current_leader_epoch
        return self.partition.closed is None and epoch in (-1, self.partition.leader_epoch)

    # Hot: once per fetch, and again if it had to wait.
    def read(self, frame: bytes, offset: int) -> list[Part] | None:
        """Return the answer, empty if there are too few bytes; None if the slow path is needed."""
        partition = self.partition
        log = partition.log
        high_watermark = partition.high_watermark
        stable = log.producers.last_stable_offset(high_watermark, log.log_start_offset)
        end = stable if self.committed else high_watermark
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return None
        if offset >= end:
            return []
        try:
            located = log.read(offset, self.max_bytes, max_offset=end)
            if located.size < self.min_bytes or not located.size:
                return []
            if self.committed and log.segments.aborted_transactions(offset, end):
                return None
            records = as_part(located)
        except OttlaError:
            # The slow path fails in the same way, and its answer contains the reason.
            return None
        self.use.bytes += located.size
        remembered = self.remembered
        if remembered is not None:
            remembered.high_watermark = high_watermark
            remembered.log_start_offset = log.log_start_offset
        traffic = partition.traffic
        traffic.fetches += 1
        traffic.fetched_bytes += located.size
        numbers = (high_watermark, stable, log.log_start_offset)
        return self._answer(frame, numbers, records, located.size)

    def want(self, offset: int) -> None:
        """Update the fetch offset in the session, if there is one."""
        if self.remembered is not None:
            self.remembered.wanted = self.wanted_at(offset)

    def wanted_at(self, offset: int) -> WantedPartition:
        """Return the fields that a request from `offset` has for the partition."""
        return self._wanted._replace(fetch_offset=offset)

    def _answer(
        self, frame: bytes, numbers: tuple[int, int, int], records: Part, records_bytes: int
    ) -> list[Part]:
        """Return the response with these numbers (high watermark and so on) and records."""
        head = bytearray(self._answer_head)
        _NUMBERS.pack_into(head, self._numbers_position, *numbers)
        if self._is_flexible:
            append_unsigned(head, records_bytes + 1)
        else:
            head += _INT32.pack(records_bytes)
        tail = self._answer_tail
        (correlation_id,) = _INT32.unpack_from(frame, CORRELATION_POSITION)
        size = len(head) + records_bytes + len(tail)
        _HEAD.pack_into(head, 0, size - _INT32.size, correlation_id)
        return [head, records, tail] if tail else [head, records]


def _joined(parts: list[Part]) -> bytes:
    return b"".join(bytes(part) for part in parts if not isinstance(part, FileRegion))
