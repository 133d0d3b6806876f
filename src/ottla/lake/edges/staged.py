"""Encodes prepared batches as bytes, from the task that made them to the sending process."""

from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import PreparedBatch

# Sizes of the topic's name, partition, number of records, size of the batch.
_HEAD = Struct(">Hiii")


class BatchOutput(Protocol):
    """The output that batches are written to."""

    def write(self, content: bytes, /) -> int: ...


def write_batch(out: BatchOutput, batch: PreparedBatch) -> None:
    """Append a batch."""
    topic = batch.topic.encode()
    head = _HEAD.pack(len(topic), batch.partition, batch.record_count, len(batch.content))
    out.write(head + topic + batch.content)


def read_batches(source: BinaryIO) -> Iterator[PreparedBatch]:
    """Yield the batches in their order. Raises OttlaError if the bytes end within one."""
    while head := source.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise _torn()
        name_size, partition, record_count, size = _HEAD.unpack(head)
        topic, content = source.read(name_size), source.read(size)
        if len(topic) < name_size or len(content) < size:
            raise _torn()
        yield PreparedBatch(topic.decode(), partition, record_count, content)


def _torn() -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        "what a task staged ends within a batch; nothing was written: run the query again",
    )
