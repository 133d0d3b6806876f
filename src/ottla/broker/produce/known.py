"""The repeated produce requests of one producer to one partition: recognised and answered."""

from struct import Struct
from typing import Final

from ottla.base.errors import OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.layout import MARKS, TRAILER, Layout
from ottla.broker.usage.table import UsageEntry
from ottla.record.arrival import NUMBERS, BatchRun, usual_header, usual_run
from ottla.record.codec import LONG_MAX
from ottla.record.header import BatchHeader
from ottla.storage.segment.config import LogConfig
from ottla.wire.api import ApiKey
from ottla.wire.frames import Part, encode_response
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

_INT32: Final = Struct(">i")


class Known:
    """The produce requests of one producer to one partition."""

    __slots__ = (
        "_after_max_ms",
        "_config",
        "_is_plain",
        "_size_max",
        "_topic_name",
        "acks",
        "answer",
        "head",
        "is_flexible",
        "numbers_position",
        "opening",
        "partition",
        "prefix",
        "timeout_ms",
        "trailer_bytes",
        "use",
        "version",
        "was_usual",
    )

    def __init__(
        self,
        head: int,
        prefix: bytes,
        version: int,
        layout: Layout,
        body: ProduceRequest,
        partition: Partition,
        use: UsageEntry,
    ) -> None:
        # Counts the bytes that the client produces to the topic.
        self.use = use
        # The API key and version, as a number and as bytes.
        self.head = head
        self.opening = _INT32.pack(head)
        # The repeated bytes between correlation id and records.
        self.prefix = prefix
        self.version = version
        self.is_flexible = layout.is_flexible
        self.trailer_bytes = len(TRAILER) if layout.is_flexible else 0
        self.acks = body.acks
        self.timeout_ms = body.timeout_ms
        self.partition = partition
        # Whether the last batch was usual; after an unusual one, more of them are likely.
        self.was_usual = True
        self._topic_name = body.topic_data[0].name
        parts = self._encode(
            PartitionProduceResponse(
                index=partition.index,
                base_offset=MARKS[0],
                log_append_time_ms=MARKS[1],
                log_start_offset=MARKS[2],
            ),
            correlation_id=0,
        )
        self.answer = b"".join(
            bytes(part) for part in parts if isinstance(part, (bytes, bytearray))
        )
        self.numbers_position = self.answer.index(NUMBERS.pack(*MARKS))
        self._take(partition.log.config)

    # Hot: once per request.
    def usual(self, frame: memoryview, position: int, now_ms: int) -> BatchHeader | None:
        """Return the header of a batch that needs no full validation; None if it needs one."""
        if not self._takes_usual():
            return None
        newest_max = min(now_ms + self._after_max_ms, LONG_MAX)
        header = usual_header(
            frame.tobytes(), position, self.is_flexible, self._size_max, newest_max
        )
        self.was_usual = header is not None
        return header

    # Hot: once per receive.
    def usual_run(self, received: memoryview, count_max: int, now_ms: int) -> BatchRun | None:
        """Return the batches at the start of `received` that need no full validation."""
        if not self._takes_usual():
            return None
        run = usual_run(
            received,
            self.opening,
            self.prefix,
            self.is_flexible,
            self._size_max,
            min(now_ms + self._after_max_ms, LONG_MAX),
            count_max,
        )
        self.was_usual = run is not None
        return run

    def _takes_usual(self) -> bool:
        """Return whether the topic's settings allow usual batches to be appended unchanged."""
        config = self.partition.log.config
        if config is not self._config:
            self._take(config)
        return self._is_plain

    def _take(self, config: LogConfig) -> None:
        """Remember how the topic's settings affect a batch. A change of them replaces `config`."""
        self._config = config
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._size_max = min(config.max_message_bytes, config.segment_bytes)
        self._is_plain = (
            config.compression_type in ("producer", "uncompressed")
            and config.message_timestamp_type == "CreateTime"
            and config.message_timestamp_before_max_ms == LONG_MAX
            and not config.is_compacted
        )

    def refusal(self, error: OttlaError, correlation_id: int) -> list[Part]:
        """Return the answer if the log refuses the batch."""
        self.partition.traffic.produce_failures += 1
        answer = PartitionProduceResponse(
            index=self.partition.index,
            error_code=error.code,
            base_offset=-1,
            error_message=error.message,
        )
        return self._encode(answer, correlation_id)

    def response(self, answer: PartitionProduceResponse) -> ProduceResponse:
        """Return a response that contains only this answer, for the one partition."""
        topic = TopicProduceResponse(
            name=self._topic_name,
            topic_id=self.partition.topic_id,
            partition_responses=[answer],
        )
        return ProduceResponse(responses=[topic])

    def _encode(self, answer: PartitionProduceResponse, correlation_id: int) -> list[Part]:
        return self.encode(self.response(answer), correlation_id)

    def encode(self, response: ProduceResponse, correlation_id: int) -> list[Part]:
        """Encode a response in the version of the requests."""
        return encode_response(response, ApiKey.PRODUCE, self.version, correlation_id)
