"""Writing Python source: lines, fresh names, and runs of fixed-size fields fused into one struct.

Shared by the compilers of decoders and of encoders.
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
# How many elements of lists are a step, where a message is decoded or encoded in steps.
STEP: Final = 256
SIZES: Final = {kind: struct.calcsize(">" + code) for kind, code in CODES.items()}


class Source:
    """A function being written, with the objects its code refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.names: dict[str, Any] = {
            name: getattr(primitive, name) for name in primitive.__all__
        } | {"new": object.__new__}
        self._count = 0

    def line(self, text: str) -> None:
        """Add one line at the present indentation."""
        self.lines.append(" " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        """Return a variable name used nowhere else in this function."""
        self._count += 1
        return f"{prefix}{self._count}"

    def refer(self, prefix: str, value: Any) -> str:
        """Return a name under which the code finds `value`."""
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
        """Return the name of the structs of lists of numbers, by their length."""
        return self.refer("arrays", _ARRAYS[code])

    def constant(self, value: Any) -> str:
        """Return an expression for a default."""
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        return self.refer("constant", value)

    def function(self, name: str, head: str) -> Any:
        """Compile `def name(head)` with the lines so far, and return the function."""
        source = self.text(name, head)
        exec(compile(source, f"<ottla.wire {name}>", "exec"), self.names)
        return self.names[name]

    def text(self, name: str, head: str) -> str:
        """The source as it will be compiled."""
        return "\n".join([f"def {name}({head}):", *self.lines]) + "\n"


class Shape:
    """Which fields of a struct one version has, and how much room they take at least."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def plain(self, cls: type[Message]) -> list[Field]:
        """The fields in order of declaration, tagged ones excepted."""
        return [f for f in cls.__fields__ if f.exists(self.version) and not self.is_tagged(f)]

    def tagged(self, cls: type[Message]) -> list[Field]:
        """The fields of the tagged section, by tag."""
        found = [f for f in cls.__fields__ if f.exists(self.version) and self.is_tagged(f)]
        return sorted(found, key=lambda f: f.tag or 0)

    def is_tagged(self, field: Field) -> bool:
        """Whether the field is sent in the tagged section of this version."""
        return self.flexible and field.tag is not None

    def absent(self, cls: type[Message]) -> list[Field]:
        """The fields that this version does not have."""
        return [f for f in cls.__fields__ if not f.exists(self.version)]

    def least_size(self, kind: Any, nullable: bool = False) -> int:
        """The fewest bytes a value of this kind can take; at least 1 for a struct."""
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
