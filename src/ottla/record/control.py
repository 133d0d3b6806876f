"""Control batches: the markers that end a transaction in a partition.

Format: Kafka documentation, "Control Batches", and KIP-98. A control batch has one record: its key
holds a version and the type, its value a version and the coordinator epoch. Consumers skip control
records, which have offsets like others.
"""

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from ottla.record.builder import BatchBuilder
from ottla.record.codec import Record
from ottla.record.compression import CorruptBatch

_KEY = Struct(">hh")
_VALUE = Struct(">hi")


class ControlType(IntEnum):
    """The types of control records; other numbers belong to Kafka's own quorum."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The outcome of a producer's transaction in one partition."""

    control_type: ControlType
    coordinator_epoch: int


def build_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
) -> bytearray:
    """Return the control batch that ends `producer_id`'s transaction. `timestamp` in ms."""
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        is_control=True,
        base_offset=base_offset,
    )
    builder.append(
        timestamp,
        _KEY.pack(0, marker.control_type),
        _VALUE.pack(0, marker.coordinator_epoch),
    )
    return builder.build()


def read_marker(record: Record) -> EndTransactionMarker | None:
    """Return the marker in the record of a control batch; None for another kind.

    Later versions may append fields, which are ignored. Raises CorruptBatch.
    """
    try:
        _, number = _KEY.unpack_from(record.key or b"")
        if number not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except error as short:
        raise CorruptBatch(f"control record at offset {record.offset} is too short") from short
    return EndTransactionMarker(ControlType(number), coordinator_epoch)
