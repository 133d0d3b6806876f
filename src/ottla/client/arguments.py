"""What callers give for names, partitions and options, checked before a request is made of it.

A string is an iterable of characters and a TopicPartition one of its two fields: taken for a list,
either would fail far away, or ask a broker about topics "f", "l" and "i".
"""

from collections.abc import Iterable
from typing import TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
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
    each = [given] if isinstance(given, TopicPartition) else given
    if not isinstance(each, str):
        wanted = list(each)
        if not any(isinstance(one, str) or len(one) != 2 for one in wanted):
            return [TopicPartition(*one) for one in wanted]
    raise ClientError(
        ErrorCode.INVALID_REQUEST,
        f"{given!r} names no partitions: give [TopicPartition(topic, number), ...]; whole topics"
        " are read by `subscribe`, as a member of a group",
    )


def checked_options(given: Options | None, kind: type[Options], example: str) -> Options:
    """`given`, or the defaults. Raises ClientError where it is something else, such as a topic."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{given!r} stands where {kind.__name__} belong: {example}",
        )
    return given
