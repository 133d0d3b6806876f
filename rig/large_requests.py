"""Requests with many elements in one of their lists, of every API and version.

They are what a client sends that wants a broker's time: names that exist or do not, all different
or all the same. `n` elements beside `2n` show how the work for a request grows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from ottla.wire.api import key_name
from ottla.wire.field import Field
from ottla.wire.notation import REQUESTS, Message, MessageType
from rig.declared import import_all

# Of fields outside of the list that grows: what exists in the brokers of the tests.
TOPIC, GROUP = "own", "own"
# What a string must be for its request to be looked at any further.
_WORDS = {
    "topic_name": TOPIC,
    "name": TOPIC,
    "topic": TOPIC,
    "resource_name": TOPIC,
    "group_id": GROUP,
    "member_id": "",
    "protocol_type": "consumer",
    "mechanism": "PLAIN",
}
_NUMBERS = {"resource_type": 2, "replication_factor": 1, "num_partitions": 1, "count": 2}


@dataclass(frozen=True, slots=True)
class Growing:
    """A list in the requests of one version of an API: `path` are the fields that lead to it."""

    api: int
    version: int
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{key_name(self.api)} v{self.version} {'.'.join(self.path)}"

    def request(self, count: int, *, same: bool = False) -> Message:
        """A request with `count` elements in the list, and one in each list around it."""
        return _message(REQUESTS[self.api], self.version, self.path, count, same)


def growing(apis: dict[int, tuple[int, int]]) -> Iterator[Growing]:
    """All lists of these APIs in these versions that clients may send."""
    import_all()
    for key, (low, high) in sorted(apis.items()):
        request = REQUESTS[key]
        for version in range(max(low, request.__versions__[0]), high + 1):
            for path in _lists(request, version):
                yield Growing(key, version, path)


def _lists(cls: Any, version: int) -> Iterator[tuple[str, ...]]:
    for field in cast("type[Message]", cls).__fields__:
        if field.exists(version):
            if field.kind == "array":
                yield (field.name,)
            if isinstance(field.element, MessageType):
                for path in _lists(field.element, version):
                    yield (field.name, *path)


def _message(cls: Any, version: int, path: tuple[str, ...], count: int, same: bool) -> Message:
    values: dict[str, Any] = {}
    for field in cls.__fields__:
        if not field.exists(version):
            continue
        if path and field.name == path[0]:
            values[field.name] = _grown(field, version, path[1:], count, same)
        elif field.kind not in ("array", "struct"):
            values[field.name] = _scalar(field.kind, field.name)
    return cast("Message", cls(**values))


def _grown(field: Field, version: int, path: tuple[str, ...], count: int, same: bool) -> Any:
    if field.kind == "struct":
        return _message(field.element, version, path, count, same)
    if path:
        return [_message(field.element, version, path, count, same)]
    return [_element(field.element, version, 0 if same else index) for index in range(count)]


def _element(kind: Any, version: int, index: int) -> Any:
    if not isinstance(kind, MessageType):
        return _numbered(kind, index)
    cls: Any = kind
    first = True
    values: dict[str, Any] = {}
    for field in cls.__fields__:
        if field.exists(version) and field.kind not in ("array", "struct"):
            named = field.kind in ("string", "uuid", "int32") and first
            first = first and not named
            values[field.name] = (
                _numbered(field.kind, index) if named else _scalar(field.kind, field.name)
            )
        elif field.exists(version) and field.kind == "array":
            inner: Any = field.element
            values[field.name] = [
                _message(inner, version, (), 0, True)
                if isinstance(inner, MessageType)
                else _scalar(inner, "")
            ]
    return cls(**values)


def _numbered(kind: str, index: int) -> Any:
    """The element's own value of a kind."""
    if kind == "string":
        return f"n{index}"
    if kind == "uuid":
        return UUID(int=index + 1000)
    if kind == "int8":
        return index % 100
    if kind == "int16":
        return index % 30_000
    return index


def _scalar(kind: str, name: str) -> Any:
    match kind:
        case "string":
            return _WORDS.get(name, "x")
        case "binary":
            return b"x"
        case "records":
            return b""
        case "uuid":
            return UUID(int=0)
        case "boolean":
            return False
        case "float64":
            return 0.0
    return _NUMBERS.get(name, 0)
