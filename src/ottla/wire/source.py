"""Writes Python source: lines, unused names, and one struct for consecutive fields of fixed size.

The compilers of decoders and of encoders share it.
"""

import struct
from typing import Any, Final

from ottla.wire import primitive
from ottla.wire.field import Field
from ottla.wire.notation import Message, MessageType

CODES: Final = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
_ARRAYS: Final = {code: primitive.Arrays(code) for code in CODES.values()}
# How many list elements are processed per step when a message is decoded or encoded in steps.
STEP: Final = 256
SIZES: Final = {kind: struct.calcsize(">" + code) for kind, code in CODES.items()}


class Source:
    """The source of one function, and the objects to which its code refers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.names: dict[str, Any] = {
            name: getattr(primitive, name) for name in primitive.__all__
        } | {"new": object.__new__}
        self._count = 0

    def line(self, text: str) -> None:
        """Add one line with the current indentation."""
        self.lines.append(" " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        """Return a variable name that the function does not use yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def refer(self, prefix: str, value: Any) -> str:
        """Return a name by which the code can access `value`."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def struct_function(self, codes: str, function: str) -> str:
        """Return the name of `Struct(">" + codes).pack` or `.unpack_from`."""
        name = f"{function}_{codes.replace('?', 'o')}"
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + codes), function)
        return name

    def arrays(self, code: str) -> str:
        """Return the name of the `Arrays` for lists of numbers with this format code."""
        return self.refer("arrays", _ARRAYS[code])

    def constant(self, value: Any) -> str:
        """Return an expression for a default value."""
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        return self.refer("constant", value)

    def function(self, name: str, head: str) -> Any:
        """Compile `def name(head)` with the lines so far, and return the function."""
        source = self.text(name, head)
        exec(compile(source, f"<ottla.wire {name}>", "exec"), self.names)
        return self.names[name]

    def text(self, name: str, head: str) -> str:
        """Return the source as it will be compiled."""
        return "\n".join([f"def {name}({head}):", *self.lines]) + "\n"


class Shape:
    """The fields that a struct has in one version, and their smallest sizes."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def plain(self, cls: type[Message]) -> list[Field]:
        """Return the fields without the tagged ones, in order of declaration."""
        return [f for f in cls.__fields__ if f.exists(self.version) and not self.is_tagged(f)]

    def tagged(self, cls: type[Message]) -> list[Field]:
        """Return the fields of the tagged section, in order of their tags."""
        found = [f for f in cls.__fields__ if f.exists(self.version) and self.is_tagged(f)]
        return sorted(found, key=lambda f: f.tag or 0)

    def is_tagged(self, field: Field) -> bool:
        """Return whether the field is sent in the tagged section of this version."""
        return self.flexible and field.tag is not None

    def absent(self, cls: type[Message]) -> list[Field]:
        """Return the fields that this version does not have."""
        return [f for f in cls.__fields__ if not f.exists(self.version)]

    def least_size(self, kind: Any, nullable: bool = False) -> int:
        """Return the smallest size in bytes of a value of this kind; at least 1 for a struct."""
        if isinstance(kind, MessageType):
            if nullable:
                return 1
            cls: Any = kind
            inside = sum(
                self.least_size(
                    f.element if f.kind == "struct" else f.kind, f.may_be_null(self.version)
                )
                for f in self.plain(cls)
            )
            return max(1, inside + self.flexible)
        if kind in SIZES:
            return SIZES[kind]
        if self.flexible:
            return 1
        return 2 if kind == "string" else 4
