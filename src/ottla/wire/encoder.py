"""Compiles the encoder of one message in one version: straight code without look-ups.

The code appends to a bytearray. Consecutive fields of fixed size, and the length of the field after
them, are written by one `Struct.pack`. Records are added to the list of parts by reference.
"""

from typing import Any

from ottla.wire.field import Field
from ottla.wire.notation import Message, MessageType
from ottla.wire.source import CODES, STEP, Shape, Source


class EncoderSource(Source):
    """The body of one encoder function."""

    def __init__(self, shape: Shape, *, in_steps: bool) -> None:
        super().__init__()
        self._in_steps = in_steps
        self.shape = shape
        self.out = "out"
        self._codes: list[str] = []
        self._values: list[str] = []

    def fixed(self, code: str, value: str) -> None:
        """Queue a value of fixed size, to be written together with the next ones."""
        self._codes.append(code)
        self._values.append(value)

    def zero(self) -> None:
        """Queue a byte of 0."""
        self._codes.append("x")

    def flush(self) -> None:
        """Write the code that writes all queued values at once."""
        if self._codes:
            self.line(self._packed(self._codes, self._values))
        self._codes, self._values = [], []

    def _packed(self, codes: list[str], values: list[str]) -> str:
        if not values:
            return f"{self.out} += {bytes(len(codes))!r}"
        function = self.struct_function("".join(codes), "pack")
        return f"{self.out} += {function}({', '.join(values)})"

    def varint(self, value: str) -> None:
        """Write the queued values and then an unsigned varint."""
        codes, values = self._codes, self._values
        self._codes, self._values = [], []
        short = self._packed([*codes, "B"], [*values, value])
        if not codes:
            short = f"{self.out}.append({value})"
        self.line(f"if {value} < 128: {short}")
        self.line("else:")
        if codes:
            self.line(f" {self._packed(codes, values)}")
        self.line(f" append_unsigned({self.out}, {value})")

    def length(self, kind: str, size: str) -> None:
        """Write the length of a sized kind. In compact form `size` is the length plus one."""
        if self.shape.flexible:
            self.varint(size)
        else:
            self.fixed("h" if kind == "string" else "i", size)
            self.flush()

    def sized(self, kind: str, value: str, nullable: bool, empty: str) -> str:
        """Write the length of a value; return the name of the variable that holds the value."""
        plus = " + 1" if self.shape.flexible else ""
        item, size = self.fresh("s"), self.fresh("n")
        convert = {"string": ".encode()"}.get(kind, "")
        count = f"len({item})"
        if kind == "records":
            count = f"(sum(map(len, {item})) if isinstance({item}, several) else {count})"
        if nullable:
            self.line(f"{item} = {value}")
            null = 0 if self.shape.flexible else -1
            self.line(f"if {item} is None: {size} = {null}; {item} = {empty}")
            self.line("else:")
            if convert:
                self.line(f" {item} = {item}{convert}")
            self.line(f" {size} = {count}{plus}")
        else:
            self.line(f"{item} = {value}{convert}")
            self.line(f"{size} = {count}{plus}")
        self.length(kind, size)
        return item

    def value(self, field: Field, value: str) -> None:
        """Write one field."""
        nullable = field.may_be_null(self.shape.version)
        if field.kind == "array":
            self.array(field.element, value, nullable)
        elif field.kind == "struct":
            self.structure(field.element, value, nullable)
        else:
            self.scalar(field.kind, value, nullable)

    def scalar(self, kind: str, value: str, nullable: bool) -> None:
        """Write a value that is not a list or a struct."""
        if kind == "uuid":
            self.fixed("16s", f"{value}.bytes")
        elif kind in CODES:
            self.fixed(CODES[kind], value)
        elif kind == "records":
            item = self.sized(kind, value, nullable, "None")
            self.line(f"parts.append({self.out})")
            self.line(f"if isinstance({item}, several): parts.extend({item})")
            self.line(f"elif {item} is not None: parts.append({item})")
            self.line(f"{self.out} = bytearray()")
        else:
            item = self.sized(kind, value, nullable, 'b""')
            self.line(f"{self.out} += {item}")

    def array(self, element: Any, value: str, nullable: bool) -> None:
        """Write a list: numbers all at once, other elements one by one."""
        items = self.sized("array", value, nullable, "()")
        if element in CODES and element != "uuid":
            pack = f"{self.arrays(CODES[element])}[len({items})].pack(*{items})"
            self.line(f"if {items}: {self.out} += {pack}")
            return
        item = self.fresh("x")
        self.line(f"for {item} in {items}:")
        self.indent += 1
        if self._in_steps:
            self.line(f"if step <= 0: step = {STEP}; yield")
            self.line("step -= 1")
        if isinstance(element, MessageType):
            self.structure(element, item, False)
        else:
            self.scalar(element, item, False)
        self.flush()
        self.indent -= 1

    def structure(self, cls: Any, value: str, nullable: bool) -> None:
        """Write a nested struct; if it is nullable, a byte before it says whether it is null."""
        item = value
        if not value.isidentifier():
            item = self.fresh("x")
            self.line(f"{item} = {value}")
        if nullable:
            self.flush()
            self.line(f"if {item} is None: {self.out}.append(255)")
            self.line("else:")
            self.indent += 1
            self.fixed("b", "1")
        self.fields(cls, item)
        if nullable:
            self.flush()
            self.indent -= 1

    def fields(self, cls: type[Message], item: str) -> None:
        """Write all fields of a struct; refuse values of fields that this version lacks."""
        for field in self.shape.absent(cls):
            if not field.ignorable:
                name = f"{cls.__name__}.{field.name}"
                self.line(f"if {self.differs(field, f'{item}.{field.name}')}:")
                self.line(f" raise unsupported({name!r}, {self.shape.version})")
        for field in self.shape.plain(cls):
            self.value(field, f"{item}.{field.name}")
        if self.shape.flexible:
            self.tags(self.shape.tagged(cls), item)

    def differs(self, field: Field, value: str) -> str:
        """Return an expression that is true if the field's value differs from its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.kind == "array":
            return value
        if field.kind != "struct":
            default = self.constant(field.default)
            if field.kind == "uuid":  # Comparing is slow; the default is usually the same object.
                return f"{value} is not {default} and {value} != {default}"
            return f"{value} != {default}"
        inner = [self.differs(f, f"{value}.{f.name}") for f in field.element.__fields__]
        return f"({' or '.join(inner)})"

    def tags(self, fields: list[Field], item: str) -> None:
        """Write the section of tagged fields, without fields that have their default value."""
        if not fields:
            self.zero()
            return
        conditions = [self.differs(field, f"{item}.{field.name}") for field in fields]
        self.flush()
        self.line(f"if not ({' or '.join(conditions)}): {self.out}.append(0)")
        self.line("else:")
        self.indent += 1
        count = " + ".join(f"bool({condition})" for condition in conditions)
        self.line(f"append_unsigned({self.out}, {count})")
        outer = self.out
        for field, condition in zip(fields, conditions, strict=True):
            self.line(f"if {condition}:")
            self.indent += 1
            self.out = self.fresh("b")
            self.line(f"{self.out} = bytearray()")
            self.value(field, f"{item}.{field.name}")
            self.flush()
            self.line(f"append_unsigned({outer}, {field.tag})")
            self.line(f"append_unsigned({outer}, len({self.out}))")
            self.line(f"{outer} += {self.out}")
            self.out = outer
            self.indent -= 1
        self.indent -= 1


def encoder_source(cls: type[Message], version: int, *, in_steps: bool = False) -> EncoderSource:
    """Write the encoder of `cls` in `version` without compiling it; `in_steps` as a generator."""
    source = EncoderSource(Shape(version, version >= cls.__flexible__), in_steps=in_steps)
    if in_steps:
        source.line(f"step = {STEP}")
    source.structure(cls, "m", False)
    source.flush()
    source.line("parts.append(out)")
    if in_steps:
        # Makes the function a generator even if the message has no list.
        source.line("if step < 0: yield")
    return source
