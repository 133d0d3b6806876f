"""Compiles the decoder of one message in one version: straight code without look-ups.

The code has the variables `view` (the buffer), `p` (the position) and `limit` (the buffer's end).
Consecutive fields of fixed size, and the length of the field after them, are read by one
`Struct.unpack_from`. A varint is read as one byte, and read again in full if it is longer. Lists
grow element by element, after a check that the remaining bytes can contain so many elements. Too
few bytes raise IndexError or struct.error, which `codec.decode` turns into WireError.
"""

from typing import Any

from ottla.wire.field import Field
from ottla.wire.notation import Message, MessageType
from ottla.wire.primitive import TAGS_MAX
from ottla.wire.source import CODES, SIZES, STEP, Shape, Source

# The most bytes of a string in a client's request, as in Kafka; compact lengths have no such limit.
_STRING_BYTES_MAX = 32_767


class DecoderSource(Source):
    """The body of one decoder function."""

    def __init__(self, shape: Shape, *, in_steps: bool) -> None:
        super().__init__()
        self.shape = shape
        self._in_steps = in_steps
        self._codes: list[str] = []
        self._targets: list[str] = []
        self._size = 0

    def fixed(self, code: str, size: int, target: str) -> None:
        """Queue a value of fixed size, to be read together with the next ones."""
        self._codes.append(code)
        self._targets.append(target)
        self._size += size

    def flush(self) -> None:
        """Write the code that reads all queued values at once."""
        if self._codes == ["B"]:
            self.line(f"{self._targets[0]} = view[p]")
        elif self._targets:
            function = self.struct_function("".join(self._codes), "unpack_from")
            comma = "," if len(self._targets) == 1 else ""
            self.line(f"{', '.join(self._targets)}{comma} = {function}(view, p)")
        if self._targets:
            self.line(f"p += {self._size}")
        self._codes, self._targets, self._size = [], [], 0

    def length(self, kind: str) -> str:
        """Read the length of a sized kind; return the variable that holds it (-1 for null)."""
        size = self.fresh("n")
        if self.shape.flexible:
            self.varint(size)
            self.line(f"{size} -= 1")
        else:
            self.fixed("h" if kind == "string" else "i", 2 if kind == "string" else 4, size)
            self.flush()
        return size

    def varint(self, target: str) -> None:
        """Read the queued values and then an unsigned varint."""
        self.fixed("B", 1, target)
        self.flush()
        self.line(f"if {target} > 127: {target}, p = long_varint(view, p - 1)")

    def value(self, field: Field, target: str) -> None:
        """Read one field into `target`, an assignable expression."""
        nullable = field.may_be_null(self.shape.version)
        if field.kind == "array":
            self.array(field, target, nullable)
        elif field.kind == "struct":
            self.structure(field.element, target, nullable)
        else:
            self.scalar(field.kind, target, nullable)

    def scalar(self, kind: str, target: str, nullable: bool) -> None:
        """Read a value that is not a list or a struct."""
        if kind == "uuid":
            raw = self.fresh("u")
            self.fixed("16s", 16, raw)
            self.flush()
            self.line(f"{target} = uuid_of({raw})")
        elif kind in CODES:
            self.fixed(CODES[kind], SIZES[kind], target)
        else:
            size = self.length(kind)
            self.null_or(nullable, size, target)
            if self._in_steps and kind == "string":
                self.line(f"if {size} > {_STRING_BYTES_MAX}: raise too_long(p)")
            self.line(f"e = p + {size}")
            self.line("if not p <= e <= limit: raise truncated(p)")
            convert = {"string": ".tobytes().decode()", "binary": ".tobytes()", "records": ""}
            self.line(f"{target} = view[p:e]{convert[kind]}")
            self.line("p = e")
            self.indent -= nullable

    def null_or(self, nullable: bool, size: str, target: str) -> None:
        """Write the branch for null, and begin the block for other values."""
        if nullable:
            self.line(f"if {size} == -1: {target} = None")
            self.line("else:")
            self.indent += 1

    def array(self, field: Field, target: str, nullable: bool) -> None:
        """Read a list: numbers all at once, other elements one by one."""
        element = field.element
        size = self.length("array")
        self.null_or(nullable, size, target)
        least = self.shape.least_size(element)
        factor = "" if least == 1 else f" * {least}"
        self.line(f"if {size} < 0 or {size}{factor} > limit - p: raise truncated(p)")
        self.take_room(size)
        if element in CODES and element != "uuid":
            unpack = f"{self.arrays(CODES[element])}[{size}].unpack_from(view, p)"
            self.line(f"{target} = list({unpack}) if {size} else []")
            self.line(f"p += {size}{factor}")
        else:
            items, item = self.fresh("l"), self.fresh("x")
            self.line(f"{target} = {items} = []")
            self.line(f"for _ in range({size}):")
            self.indent += 1
            if self._in_steps:
                self.line(f"if step <= 0: step = {STEP}; yield")
                self.line("step -= 1")
            if isinstance(element, MessageType):
                self.structure(element, item, False)
            else:
                self.scalar(element, item, False)
            self.flush()
            self.line(f"{items}.append({item})")
            self.indent -= 1
        self.indent -= nullable

    def take_room(self, count: str) -> None:
        """Count list elements or tagged fields; decoding in steps fails if there are too many."""
        if self._in_steps:
            self.line(f"room -= {count}")
            self.line("if room < 0: raise too_many(p)")

    def structure(self, cls: Any, target: str, nullable: bool) -> None:
        """Read a nested struct, which is null if its first byte is negative."""
        if nullable:
            mark = self.fresh("n")
            self.fixed("b", 1, mark)
            self.flush()
            self.line(f"if {mark} < 0: {target} = None")
            self.line("else:")
            self.indent += 1
        item = target if target.isidentifier() else self.fresh("x")
        self.made(cls, item)
        if item != target:
            self.line(f"{target} = {item}")
        self.fields(cls, item)
        if nullable:
            self.flush()
            self.indent -= 1

    def made(self, cls: Any, item: str) -> None:
        """Create an object without calling its constructor, since the next code sets every slot."""
        self.line(f"{item} = new({self.refer('class_', cls)})")

    def fields(self, cls: type[Message], item: str) -> None:
        """Read all fields of a struct; set those that the version lacks to their defaults."""
        for field in self.shape.plain(cls):
            self.value(field, f"{item}.{field.name}")
        if self.shape.flexible:
            self.tags(self.shape.tagged(cls), item)
        for field in self.shape.absent(cls):
            self.default(field, f"{item}.{field.name}")

    def default(self, field: Field, target: str) -> None:
        """Set `target` to the default of the field."""
        if not field.starts_fresh:
            self.line(f"{target} = {self.constant(field.default)}")
        elif field.kind == "array":
            self.line(f"{target} = []")
        else:
            item = self.fresh("x")
            self.made(field.element, item)
            self.line(f"{target} = {item}")
            for inner in field.element.__fields__:
                self.default(inner, f"{item}.{inner.name}")

    def tags(self, fields: list[Field], item: str) -> None:
        """Read the section of tagged fields; unknown tags are dropped."""
        count = self.fresh("n")
        self.fixed("B", 1, count)
        self.flush()
        for field in fields:
            self.default(field, f"{item}.{field.name}")
        self.line(f"if {count}:")
        self.indent += 1
        self.line(f"if {count} > {TAGS_MAX}: raise too_many_tags(p)")
        self.take_room(count)
        if not fields:
            self.line("p = skip_tags(view, p - 1)")
            self.indent -= 1
            return
        tag, size, end = self.fresh("t"), self.fresh("n"), self.fresh("e")
        self.line(f"for _ in range({count}):")
        self.indent += 1
        self.line(f"{tag}, p = long_varint(view, p)")
        self.line(f"{size}, p = long_varint(view, p)")
        self.line(f"{end} = p + {size}")
        self.line(f"if {end} > limit: raise truncated(p)")
        word = "if"
        for field in fields:
            self.line(f"{word} {tag} == {field.tag}:")
            word = "elif"
            self.indent += 1
            self.value(field, f"{item}.{field.name}")
            self.flush()
            self.line(f"if p != {end}: raise wrong_tag({tag}, p)")
            self.indent -= 1
        self.line(f"p = {end}")
        self.indent -= 2


def decoder_source(cls: type[Message], version: int, *, in_steps: bool = False) -> DecoderSource:
    """Write the decoder of `cls` in `version`, without compiling it.

    With `in_steps` the decoder is a generator with the additional argument `room`; see
    `codec.decode_in_steps`.
    """
    source = DecoderSource(Shape(version, version >= cls.__flexible__), in_steps=in_steps)
    source.line("limit = len(view)")
    if in_steps:
        source.line(f"step = {STEP}")
    source.structure(cls, "m", False)
    source.flush()
    if in_steps:
        # Makes the function a generator even if the message has no list.
        source.line("if room < 0: yield")
    source.line("return m")
    return source
