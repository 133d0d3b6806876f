"""Requests that are nearly right: random messages of every API and version, then a few wrong bytes.

All chance comes from one seeded generator, so that a failing run can be repeated.
"""

import random
import struct
import time
from typing import Any
from uuid import UUID

from ottla.wire.field import Field
from ottla.wire.frames import encode_request
from ottla.wire.notation import REQUESTS, Message
from ottla.wire.parts import FileRegion
from rig.declared import import_all
from rig.frames import batch

_INTERESTING = (
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    256,
    32767,
    -32768,
    65535,
    2**31 - 1,
    -(2**31),
    2**63 - 1,
)
_NAMES = ("fuzz", "fuzz", "fuzz", "absent", "", "range", "consumer", "a b", "x" * 300, "é\0")
_WIDTHS = {"boolean": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}
# Where the size ends, the correlation id, and the header with its client id.
_SIZE, _CORRELATION, _HEADER = 4, 12, 18
# What is changed in place leaves more requests readable than what moves the rest.
_CHANGES = ("bit", "byte", "byte", "number", "number", "cut", "insert", "delete")


class Corpus:
    """Random whole requests of the APIs that a broker advertises."""

    def __init__(self, chance: random.Random, advertised: dict[int, tuple[int, int]]) -> None:
        self._chance = chance
        self._apis: list[tuple[type[Message], int, int]] = []
        import_all()
        for key, (low, high) in sorted(advertised.items()):
            if key in REQUESTS:
                least, most = REQUESTS[key].__versions__
                self._apis.append((REQUESTS[key], max(low, least), min(high, most)))
        self._records = batch(300, 50, int(time.time() * 1000)).data

    def request(self, correlation_id: int) -> bytes:
        """A request that encodes cleanly, whatever it asks for."""
        kind, low, high = self._chance.choice(self._apis)
        version = self._chance.randint(low, high)
        message = self._message(kind, version)
        parts = encode_request(message, version, correlation_id, "fuzz")
        return b"".join(bytes(part) for part in parts if not isinstance(part, FileRegion))

    def _message(self, kind: type[Message], version: int) -> Message:
        values = {
            field.name: self._value(field, version)
            for field in kind.__fields__
            if field.exists(version)
        }
        return kind(**values)

    def _value(self, field: Field, version: int) -> Any:
        low, high = field.nullable
        if low <= version <= high and self._chance.random() < 0.2:
            return None
        if field.kind == "array":
            count = self._chance.choice((0, 1, 1, 1, 2, 5))
            return [self._element(field.element, version) for _ in range(count)]
        if isinstance(field.element, type) and issubclass(field.element, Message):
            return self._message(field.element, version)
        return self._primitive(field.kind, field.name)

    def _element(self, element: Any, version: int) -> Any:
        if isinstance(element, str):
            return self._primitive(element, "")
        return self._message(element, version)

    def _primitive(self, kind: str, name: str) -> Any:
        chance = self._chance
        match kind:
            case "boolean":
                return chance.random() < 0.5
            case "string":
                return chance.choice(_NAMES)
            case "binary":
                return chance.randbytes(chance.choice((0, 3, 40)))
            case "records":
                return chance.choice((self._records, self._records, chance.randbytes(80), b""))
            case "uuid":
                return UUID(int=chance.choice((0, 1, chance.getrandbits(128))))
            case "float64":
                return chance.random()
        if name.endswith("_ms") and name != "timestamp_ms":
            return chance.choice((0, 1, 10, 50))  # Waits that end while the fuzzer still looks.
        width = 8 * _WIDTHS[kind]
        value = chance.choice((0, 0, 0, 1, 1, 2, -1, 5, chance.choice(_INTERESTING)))
        if kind.startswith("u"):
            return value % (1 << width)
        half = 1 << (width - 1)
        return (value + half) % (1 << width) - half


def mutate(chance: random.Random, frame: bytes) -> bytes:
    """A request with a few bytes changed, lost or added; its correlation id is kept.

    One in thirty keeps the size it had, and so lies about it.
    """
    data = bytearray(frame)
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 4))):
        _change(chance, data)
    if chance.random() > 1 / 30:
        struct.pack_into(">i", data, 0, len(data) - _SIZE)
    return bytes(data)


def _change(chance: random.Random, data: bytearray) -> None:
    """One change: mostly to the body, now and then to the header around the correlation id."""
    if chance.random() < 0.03:
        data[chance.randrange(_SIZE, 8)] = chance.choice((0, 1, 3, 18, 255, chance.getrandbits(8)))
        return
    start = _HEADER if chance.random() < 0.95 else _CORRELATION
    if len(data) <= start:
        data += b"\0"
        return
    at = chance.randrange(start, len(data))
    match chance.choice(_CHANGES):
        case "bit":
            data[at] ^= 1 << chance.randrange(8)
        case "byte":
            data[at] = chance.getrandbits(8)
        case "number":
            number = struct.pack(">I", chance.choice(_INTERESTING) % (1 << 32))
            data[at : at + 4] = number[: len(data) - at]
        case "cut":
            del data[at:]
        case "insert":
            data[at:at] = chance.randbytes(chance.choice((1, 4, 30)))
        case _:
            del data[at : at + chance.choice((1, 2, 4, 8))]
