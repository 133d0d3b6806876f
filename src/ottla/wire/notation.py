"""Ottla's notation for messages: a class for each struct, a field specifier for each attribute.

    class TopicProduceData(Message):
        name: str = string("0-12")
        partition_data: list[PartitionProduceData] = array(PartitionProduceData)

The first argument names the versions that have the field ("3+", "0-12", "2", "none"). `nullable`
names the versions in which it may be None. `tag` makes it a tagged field (KIP-482). `ignorable`
means that its value may be dropped in versions without the field. Every field has a default: the
given one, or None if it is nullable in all its versions, or the zero of its type.

Type checkers see each class as a keyword-only dataclass. `__slots__` come from the metaclass;
`__init__` is compiled when the class is first called, which keeps imports cheap.
"""

from collections.abc import Callable
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)
from uuid import UUID

from ottla.wire.field import HIGHEST_VERSION, UNSET, Field, version_range
from ottla.wire.parts import Records

T = TypeVar("T")

# The requests and responses by API key, and the first flexible version of each key. Of several
# declarations of a key, the first one imported is used. A module that sends or serves an API
# imports its messages.
REQUESTS: Final[dict[int, "type[Message]"]] = {}
RESPONSES: Final[dict[int, "type[Message]"]] = {}
FLEXIBLE_FROM: Final[dict[int, int]] = {}


class MessageType(type):
    """Turns field specifiers into slots and keeps them, in order, in `__fields__`."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api_key: int = -1,
        versions: str = "0+",
        flexible: str = "none",
    ) -> "MessageType":
        fields = {key: value for key, value in namespace.items() if type(value) is Field}
        for key, field in fields.items():
            field.name = key
            del namespace[key]
        low, high = version_range(flexible)
        namespace |= {
            "__slots__": tuple(fields),
            "__fields__": tuple(fields.values()),
            "__api_key__": api_key,
            "__versions__": version_range(versions),
            "__flexible__": low if low <= high else HIGHEST_VERSION + 1,
            "__decoders__": {},
            "__encoders__": {},
        }
        made = super().__new__(cls, name, bases, namespace)
        if api_key >= 0:
            declared = REQUESTS if name.endswith("Request") else RESPONSES
            declared.setdefault(api_key, cast("type[Message]", made))
            FLEXIBLE_FROM.setdefault(api_key, namespace["__flexible__"])
        return made


@dataclass_transform(kw_only_default=True)
class Message(metaclass=MessageType):
    """A struct of the protocol. It is mutable, compared field by field, and not hashable."""

    # Set by the metaclass. Only a whole message has an API key, versions and a first flexible
    # version.
    __fields__: ClassVar[tuple[Field, ...]]
    __api_key__: ClassVar[int]
    __versions__: ClassVar[tuple[int, int]]
    __flexible__: ClassVar[int]
    __decoders__: ClassVar[dict[int, Callable[..., Any]]]
    __encoders__: ClassVar[dict[int, Callable[[Any, bytearray, list[Any]], Any]]]

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = _constructor(cls)  # type: ignore[method-assign] # compiled on first use
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.__fields__)

    __hash__ = None  # type: ignore[assignment] # mutable, so never a key

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.__fields__)
        return f"{type(self).__name__}({shown})"


def _constructor(cls: type[Message]) -> Any:
    """Compile the keyword-only `__init__` of one class."""
    names: dict[str, Any] = {"unset": UNSET}
    parameters, body = ["self"], []
    for index, field in enumerate(cls.__fields__):
        if index == 0:
            parameters.append("*")
        value = field.name
        if field.starts_fresh:
            fresh = "[]"
            if field.kind == "struct":
                fresh = f"new{index}()"
                names[f"new{index}"] = field.element
            parameters.append(f"{value}=unset")
            value = f"{fresh} if {value} is unset else {value}"
        else:
            names[f"default{index}"] = field.default
            parameters.append(f"{value}=default{index}")
        body.append(f" self.{field.name} = {value}")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"])
    exec(source, names)
    return names["__init__"]


def has_field(cls: type[Message], name: str, version: int) -> bool:
    """Return whether a version of the message has the field."""
    return any(field.name == name and field.exists(version) for field in cls.__fields__)


def with_list(message: T, replaced: list[Any] | None, wanted: list[Any]) -> T:
    """Return a copy of a message in which the list `replaced` is exchanged for `wanted`."""
    made = object.__new__(type(message))
    for field in cast("Message", message).__fields__:
        value = getattr(message, field.name)
        setattr(made, field.name, wanted if value is replaced else value)
    return made


class Primitive(Generic[T]):
    """The specifier of a field of fixed size: `int32("3+", default=-1)`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(
        self,
        versions: str = "0+",
        *,
        default: T = UNSET,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T:
        return cast("T", Field(self.kind, versions, None, default, tag, ignorable))


class Sized(Generic[T]):
    """The specifier of a field with a length prefix, which may be nullable."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @overload
    def __call__(
        self,
        versions: str = "0+",
        *,
        nullable: None = None,
        default: T = ...,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T: ...
    @overload
    def __call__(
        self,
        versions: str = "0+",
        *,
        nullable: str,
        default: T | None = ...,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T | None: ...
    def __call__(
        self,
        versions: str = "0+",
        *,
        nullable: str | None = None,
        default: T | None = UNSET,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T | None:
        return cast("T", Field(self.kind, versions, nullable, default, tag, ignorable))


boolean: Final = Primitive[bool]("boolean")
int8: Final = Primitive[int]("int8")
int16: Final = Primitive[int]("int16")
uint16: Final = Primitive[int]("uint16")
int32: Final = Primitive[int]("int32")
int64: Final = Primitive[int]("int64")
float64: Final = Primitive[float]("float64")
uuid: Final = Primitive[UUID]("uuid")
string: Final = Sized[str]("string")
binary: Final = Sized[bytes]("binary")
# Record batches. They are decoded as a slice of the buffer, a memoryview, and encoded by reference.
batches: Final = Sized[Records]("records")


@overload
def array(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T]: ...
@overload
def array(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: str,
    default: None = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T] | None: ...
def array(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: None = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T] | None:
    """Declare a list of structs or of primitives; `element` is a message class or `int32` etc."""
    item = element.kind if isinstance(element, Primitive | Sized) else element
    return cast("list[T]", Field("array", versions, nullable, default, tag, ignorable, item))


@overload
def struct(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> T: ...
@overload
def struct(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: str,
    default: None = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> T | None: ...
def struct(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: None = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
) -> T | None:
    """Declare a nested struct."""
    return cast("T", Field("struct", versions, nullable, default, tag, ignorable, element))
