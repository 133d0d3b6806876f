"""Makes arbitrary messages of a class for one version, from a seeded generator."""

import random
from typing import Any
from uuid import UUID

from ottla.wire.api import FIRST_PRIVATE_TAG
from ottla.wire.field import Field
from ottla.wire.notation import Message, MessageType

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "flights", "ünïcödé", "日本", "x" * 126, "y" * 127, "z" * 128, "w" * 300)


def make(cls: type[Message], version: int, chance: random.Random, *, private: bool = True) -> Any:
    """Return a message whose fields of that version are arbitrary, the others at their default.

    Without `private`, the fields that Kafka does not have are at their default, too.
    """
    return cls(
        **{
            field.name: _value(field, version, chance, private)
            for field in cls.__fields__
            if field.exists(version) and (private or not is_private(field))
        }
    )


def is_private(field: Field) -> bool:
    """Whether Kafka has no such field."""
    return field.tag is not None and field.tag >= FIRST_PRIVATE_TAG


def smallest(kind: Any) -> Any:
    """Return the value of an array's element that takes the fewest bytes."""
    if isinstance(kind, MessageType):
        cls: Any = kind
        return cls()
    return {"string": "", "uuid": UUID(int=0)}.get(kind, 0)


def _value(field: Field, version: int, chance: random.Random, private: bool) -> Any:
    if field.may_be_null(version) and chance.random() < 0.3:
        return None
    if field.tag is not None and not field.starts_fresh and chance.random() < 0.3:
        return field.default
    if field.kind == "array":
        return [_item(field.element, version, chance, private) for _ in range(_count(chance))]
    kind = field.element if field.kind == "struct" else field.kind
    return _item(kind, version, chance, private)


def _count(chance: random.Random) -> int:
    return chance.choice((0, 1, 1, 2, 2, 3))


def _item(kind: Any, version: int, chance: random.Random, private: bool) -> Any:
    if isinstance(kind, MessageType):
        cls: Any = kind
        return make(cls, version, chance, private=private)
    if kind in _BITS:
        bits = _BITS[kind]
        return chance.choice((0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 17))
    match kind:
        case "boolean":
            return chance.random() < 0.5
        case "uint16":
            return chance.choice((0, 1, 65535))
        case "float64":
            return chance.choice((0.0, -1.5, 1e300, float("inf")))
        case "string":
            return chance.choice(_TEXTS)
        case "uuid":
            return UUID(int=chance.choice((0, 1, 2**128 - 1, chance.getrandbits(128))))
        case "binary":
            return chance.randbytes(chance.choice((0, 1, 127, 128, 200)))
        case "records":
            return memoryview(chance.randbytes(chance.choice((0, 1, 127, 128, 200))))
    raise AssertionError(kind)
