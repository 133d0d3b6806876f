"""Checks the names, partitions and options given by callers before any request is sent.

Both a string and a TopicPartition are iterable. Taken for a list, they would cause a confusing
error later, or a request for topics "f", "l" and "i".
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast, get_type_hints

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.call_check import Mistake, taken, unknown_keyword
from ottla.client.common.errors import ClientError

# One name, or several.
Names = str | Iterable[str]
# One partition, or several; pairs of a topic and a number are accepted, too.
Partitions = TopicPartition | Iterable[TopicPartition | tuple[str, int]]

Options = TypeVar("Options", bound=Mapping[str, Any])

# Short forms of Kafka's names.
_SHORT = {"group": "group_id", "compression": "compression_type"}
_AT_LEAST_ONE = (
    "batch_size",
    "buffer_memory",
    "max_request_size",
    "max_in_flight_requests_per_connection",
    "max_poll_records",
)


def name_list(given: Names) -> list[str]:
    """Return the names in `given`. Raises ClientError."""
    wanted = [given] if isinstance(given, str) else list(given)
    for name in wanted:
        if not isinstance(name, str):
            raise ClientError(ErrorCode.INVALID_REQUEST, f"{name!r} is no name: give strings")
    return wanted


def partition_list(given: Partitions) -> list[TopicPartition]:
    """Return the partitions in `given`. Raises ClientError that says what to write instead."""
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


def checked_options(given: Mapping[str, object], defaults: Options, kind: type[Options]) -> Options:
    """Return the options with defaults filled in.

    Raises TypeError for a name that `kind` does not declare, ClientError for an invalid value.
    """
    hints = get_type_hints(kind)
    found = dict(given)
    for short, name in _SHORT.items():
        if short in found and name in hints:
            if name in found:
                raise TypeError(f"{short} is short for {name}: give one of them")
            found[name] = found.pop(short)
    for name, value in found.items():
        if name not in hints:
            client = kind.__name__.removesuffix("Options")
            raise unknown_keyword(client, name, hints)
        _check_setting(name, hints[name], value)
    return cast("Options", {**defaults, **found})


def _check_setting(name: str, annotation: object, value: object) -> None:
    """Raise ClientError for a value of the wrong type, or a number below its minimum."""
    try:
        taken(annotation, value, name)
    except Mistake as mistake:
        # The code that reads the name raises a more specific error.
        if not mistake.is_unknown_name:
            raise mistake.error() from None
    least = 1 if name.endswith("_bytes") or name in _AT_LEAST_ONE else 0
    if type(value) is int and value < least and name not in ("acks", "compression_level"):
        raise Mistake(name, value, f"a number from {least} on").error()


def one_partition(partition: TopicPartition | str, number: int | None) -> TopicPartition:
    """Return one partition, given as a TopicPartition or as topic and number.

    Raises ClientError.
    """
    if isinstance(partition, str):
        if type(number) is not int:
            raise Mistake("partition", number, "the number of a partition after the topic").error()
        return TopicPartition(partition, number)
    return partition_list([partition])[0]


def seconds(name: str, given: float) -> None:
    """Raise ClientError unless `given` is a number of seconds >= 0."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise Mistake(name, given, "a number of seconds from 0 on").error()


def not_negative(name: str, given: int) -> None:
    """Raise ClientError unless `given` is an int >= 0."""
    if type(given) is not int or given < 0:
        raise Mistake(name, given, "an int from 0 on").error()
