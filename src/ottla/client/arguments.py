"""What callers give for names, partitions and options, checked before a request is made of it.

A string is an iterable of characters and a TopicPartition one of its two fields: taken for a list,
either would fail far away, or ask a broker about topics "f", "l" and "i".
"""

from collections.abc import Iterable
from typing import TypeVar, get_type_hints

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.checking import Mistake, taken
from ottla.client.errors import ClientError

# One name, or several.
Names = str | Iterable[str]
# One partition, or several; pairs of a topic and a number will do.
Partitions = TopicPartition | Iterable[TopicPartition | tuple[str, int]]

Options = TypeVar("Options")


def name_list(given: Names) -> list[str]:
    """The names in `given`. Raises ClientError."""
    wanted = [given] if isinstance(given, str) else list(given)
    for name in wanted:
        if not isinstance(name, str):
            raise ClientError(ErrorCode.INVALID_REQUEST, f"{name!r} is no name: give strings")
    return wanted


def partition_list(given: Partitions) -> list[TopicPartition]:
    """The partitions in `given`. Raises ClientError that says what to write instead."""
    if isinstance(given, TopicPartition):
        given = [given]
    try:
        found: list[TopicPartition] = taken(Iterable[TopicPartition], given, "partitions")
    except Mistake as mistake:
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{mistake.error().message}; whole topics are read by `subscribe`, as a member of a"
            " group",
        ) from None
    return found


def checked_options(given: Options | None, kind: type[Options], example: str) -> Options:
    """`given`, or the defaults. Raises ClientError where it is something else, such as a topic."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{given!r} stands where {kind.__name__} belong: {example}",
        )
    for name, annotation in get_type_hints(kind).items():
        _check_setting(name, annotation, getattr(given, name))
    return given


def _check_setting(name: str, annotation: object, value: object) -> None:
    """Raise ClientError for a value of the wrong type, or a number below what it may be."""
    try:
        taken(annotation, value, name)
    except Mistake as mistake:
        # What reads the name has an error that says more.
        if not mistake.is_unknown_name:
            raise mistake.error() from None
    least = 1 if name.endswith("_bytes") or name == "max_in_flight" else 0
    if type(value) is int and value < least and name not in ("acks", "compression_level"):
        raise Mistake(name, value, f"a number from {least} on").error()


def not_negative(name: str, given: int) -> None:
    """Raise ClientError unless `given` is a number from 0 on."""
    if type(given) is not int or given < 0:
        raise Mistake(name, given, "an int from 0 on").error()
