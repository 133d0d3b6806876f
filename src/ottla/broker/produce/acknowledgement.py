"""The answer to a produce request with acks=all; it waits until the records are committed."""

from struct import Struct
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.broker.produce.known import Known
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.usage.delays import SLOW_MS
from ottla.network.connection import Connection
from ottla.network.service import Slot
from ottla.record.arrival import NUMBERS
from ottla.wire.frames import CORRELATION_POSITION, Part
from ottla.wire.messages.produce import PartitionProduceResponse

_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Asked(NamedTuple):
    """The data of a produce request that `new_leaders` needs."""

    version: int
    listener: str
    connection: Connection

    @property
    def local_host(self) -> str:
        return self.connection.local_host


class Acknowledgement:
    """A produce answer that waits for the high watermark."""

    __slots__ = ("_answer", "_asked", "_deadline", "_known", "_parts", "_slot")

    def __init__(
        self, parts: ProduceParts, slot: Slot, answer: bytearray, known: Known, asked: Asked
    ) -> None:
        self._parts = parts
        self._slot: Slot | None = slot
        self._answer = answer
        self._known = known
        self._asked = asked

    def wait(self, offset: int) -> None:
        """Answer when the high watermark reaches `offset`, or when it cannot reach it any more."""
        known = self._known
        self._deadline = self._parts.runtime.purgatory.schedule(known.timeout_ms, self._on_timeout)
        known.partition.on_high_watermark(offset, self._on_reached)

    def _on_reached(self, code: ErrorCode) -> None:
        if self._slot is not None:
            self._parts.runtime.purgatory.cancel(self._deadline)
            self._give(code)

    def _on_timeout(self) -> None:
        if self._slot is not None:
            self._give(ErrorCode.REQUEST_TIMED_OUT)

    def _give(self, code: ErrorCode) -> None:
        slot, self._slot = self._slot, None
        assert slot is not None
        parts, known = self._parts, self._known
        took_ms = parts.runtime.clock.monotonic_ms() - self._deadline.at_ms + known.timeout_ms
        if took_ms >= SLOW_MS:
            is_late = code is ErrorCode.REQUEST_TIMED_OUT
            wait = known.partition.wait_for_commit(is_late=is_late)
            parts.usage.note_slow(known.use.key.client_id, took_ms, wait)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            slot.answer(self._redirection())
            return
        if code is not ErrorCode.NONE:
            _INT16.pack_into(self._answer, self._known.numbers_position - _INT16.size, code)
        slot.answer([self._answer])

    def _redirection(self) -> list[Part]:
        """Return the answer that names the new leader, if another broker leads now (KIP-951)."""
        known, answer = self._known, self._answer
        base_offset, appended_ms, log_start = NUMBERS.unpack_from(answer, known.numbers_position)
        response = known.response(
            PartitionProduceResponse(
                index=known.partition.index,
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                base_offset=base_offset,
                log_append_time_ms=appended_ms,
                log_start_offset=log_start,
            )
        )
        self._parts.new_leaders.add_to_produce(self._asked, response)
        (correlation_id,) = _INT32.unpack_from(answer, CORRELATION_POSITION)
        return known.encode(response, correlation_id)
