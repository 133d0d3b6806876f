"""The one record of a control batch, as far as the log needs it.

Building markers and reading them in full is `record.control`'s.
"""

from struct import Struct

from ottla.base.varint import read_zigzag

ABORT = 0
COMMIT = 1
_KEY = Struct(">hh")
_VALUE = Struct(">hi")


def read_marker(payload: bytes | memoryview) -> tuple[bool, int] | None:
    """(is it a commit, coordinator epoch) of an end-transaction marker; None for other kinds.

    `payload` is the control batch behind its header. Raises ValueError where it is too short.
    """
    try:
        _, position = read_zigzag(payload, 0)
        position += 1
        _, position = read_zigzag(payload, position)
        _, position = read_zigzag(payload, position)
        key_size, position = read_zigzag(payload, position)
        if key_size < _KEY.size:
            return None
        _, kind = _KEY.unpack_from(payload, position)
        if kind not in (ABORT, COMMIT):
            return None
        value_size, position = read_zigzag(payload, position + key_size)
        if value_size < _VALUE.size:
            raise ValueError("the value of an end-transaction marker is too short")
        _, coordinator_epoch = _VALUE.unpack_from(payload, position)
    except (IndexError, OverflowError) as error:
        raise ValueError("a control record is cut short") from error
    return kind == COMMIT, int(coordinator_epoch)
