"""One partition as addressed by one producer: its usual batches, and their answers."""

from struct import Struct
from typing import Final

from ottla.base.errors import OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.layout import MARKS, NUMBERS, TRAILER, Layout
from ottla.record.arrival import Arrived, usual_header, usual_run
from ottla.record.codec import LONG_MAX
from ottla.record.header import BatchHeader
from ottla.storage.segment.config import LogConfig
from ottla.wire.api import ApiKey
from ottla.wire.frames import CORRELATION_POSITION, Part, encode_response
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

_INT32: Final = Struct(">i")


class Known:
    """One partition as addressed by one producer."""

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
    ) -> None:
        # API key and version, as a number and as bytes.
        self.head = head
        self.opening = _INT32.pack(head)
        # The bytes between correlation id and records, which repeat.
        self.prefix = prefix
        self.version = version
        self.is_flexible = layout.is_flexible
        self.trailer_bytes = len(TRAILER) if layout.is_flexible else 0
        self.acks = body.acks
        self.timeout_ms = body.timeout_ms
        self.partition = partition
        # Whether the last batch was usual: a producer of unusual ones sends more of them.
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
        """The header of a batch that needs no full validation; None if it needs one."""
        if not self._takes_usual():
            return None
        newest_max = min(now_ms + self._after_max_ms, LONG_MAX)
        header = usual_header(
            frame.tobytes(), position, self.is_flexible, self._size_max, newest_max
        )
        self.was_usual = header is not None
        return header

    # Hot: once per receive.
    def usual_run(self, received: memoryview, count_max: int, now_ms: int) -> list[Arrived]:
        """The batches at the start of `received` that need no full validation."""
        if not self._takes_usual():
            return []
        newest_max = min(now_ms + self._after_max_ms, LONG_MAX)
        run = usual_run(
            received,
            self.opening,
            self.prefix,
            self.is_flexible,
            self._size_max,
            newest_max,
            count_max,
        )
        self.was_usual = bool(run)
        return run

    # Hot: once per run.
    def answers(self, run: list[Arrived], base_offset: int, log_start_offset: int) -> bytearray:
        """The answers to requests whose batches were appended from `base_offset` on, in order."""
        answers = bytearray(self.answer * len(run))
        size, numbers_position = len(self.answer), self.numbers_position
        position = 0
        for arrived in run:
            _INT32.pack_into(answers, position + CORRELATION_POSITION, arrived.correlation_id)
            NUMBERS.pack_into(
                answers, position + numbers_position, base_offset, -1, log_start_offset
            )
            base_offset += arrived.header.last_offset_delta + 1
            position += size
        return answers

    def _takes_usual(self) -> bool:
        """Whether the topic's settings (replaced as a whole) allow usual batches unchanged."""
        config = self.partition.log.config
        if config is not self._config:
            self._take(config)
        return self._is_plain

    def _take(self, config: LogConfig) -> None:
        """Remember the effect of the topic's settings on a batch; they are replaced as a whole."""
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
        """The answer if the log refuses the batch."""
        answer = PartitionProduceResponse(
            index=self.partition.index,
            error_code=error.code,
            base_offset=-1,
            error_message=error.message,
        )
        return self._encode(answer, correlation_id)

    def response(self, answer: PartitionProduceResponse) -> ProduceResponse:
        """A whole response with the answer for the partition."""
        topic = TopicProduceResponse(
            name=self._topic_name,
            topic_id=self.partition.topic_id,
            partition_responses=[answer],
        )
        return ProduceResponse(responses=[topic])

    def _encode(self, answer: PartitionProduceResponse, correlation_id: int) -> list[Part]:
        return self.encode(self.response(answer), correlation_id)

    def encode(self, response: ProduceResponse, correlation_id: int) -> list[Part]:
        """Encode a response for the version."""
        return encode_response(response, ApiKey.PRODUCE, self.version, correlation_id)
