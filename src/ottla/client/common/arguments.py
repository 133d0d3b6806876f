"""Checks the arguments and options given by callers before any request is sent.

Arguments are compared with the annotations of the called method, so that a mistake raises an error
that names the argument, and not one from deep inside the client or from a broker. Both a string and
a TopicPartition are iterable, and must not be taken for lists.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from itertools import repeat, starmap
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin
from typing import get_type_hints as type_hints

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import ClientError
from ottla.client.common.other_names import NO_OPTIONS, OTHER_OPTIONS

# One name, or several.
Names = str | Iterable[str]
# One partition, or several; pairs of a topic and a number are accepted, too.
Partitions = TopicPartition | Iterable[TopicPartition | tuple[str, int]]

Options = TypeVar("Options", bound=Mapping[str, Any])
Kind = TypeVar("Kind")

# Short forms of Kafka's names.
_SHORT = {"group": "group_id", "compression": "compression_type"}
_AT_LEAST_ONE = (
    "batch_size",
    "buffer_memory",
    "max_request_size",
    "max_in_flight_requests_per_connection",
    "max_poll_records",
)
_SHOWN_MAX = 100
# One value, though it is iterable.
_SINGLE = str | bytes | TopicPartition


class _Misfit(NamedTuple):
    """The part at `path` of an argument is `given`, which does not fit an annotation."""

    path: str
    given: object
    annotation: Any


def wrong(name: str, given: object, wanted: str) -> ClientError:
    """Return the error for an argument `name` whose value is not what is `wanted`."""
    # The values of a mapping may be secrets.
    shown = "a mapping" if isinstance(given, Mapping) else repr(given)
    if len(shown) > _SHOWN_MAX:
        shown = f"{shown[:_SHOWN_MAX]}…"
    return ClientError(ErrorCode.INVALID_REQUEST, f"{name} is {shown}; give {wanted}")


def checks_calls(unchecked: Collection[str] = ()) -> Callable[[type[Kind]], type[Kind]]:
    """Let the methods of a class raise ClientError for arguments that do not fit annotations.

    Coroutine functions raise it when they are awaited. Private and `unchecked` methods are left as
    they are.
    """

    def decorate(kind: type[Kind]) -> type[Kind]:
        for name, method in list(vars(kind).items()):
            is_public = name == "__init__" or not name.startswith("_")
            if inspect.isfunction(method) and is_public and name not in unchecked:
                setattr(kind, name, _checked(method))
        return kind

    return decorate


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def call_and_wait(*arguments: Any, **named: Any) -> Any:
            _require_fitting(method, arguments, named)
            return await method(*arguments, **named)

        return call_and_wait

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        _require_fitting(method, arguments, named)
        return method(*arguments, **named)

    return call


def _require_fitting(
    method: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
) -> None:
    try:
        bound = _signature(method).bind(*arguments, **named)
    except TypeError:
        return  # The call itself raises Python's error.
    error = mistake_in(method, bound.arguments)
    if error is not None:
        raise error


def mistake_in(method: Callable[..., object], given: Mapping[str, object]) -> ClientError | None:
    """Return the error for the first wrong argument of `method`; None if all are valid."""
    hints = _hints(method)
    for name, value in given.items():
        # Options are checked by `checked_options`.
        misfit = _misfit(hints[name], value, name) if name in hints and name != "options" else None
        if misfit is not None:
            return wrong(misfit.path, misfit.given, _words(misfit.annotation))
    return None


@cache
def _signature(method: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _hints(method: Callable[..., object]) -> dict[str, Any]:
    return type_hints(method)


def _misfit(annotation: Any, given: Any, path: str) -> _Misfit | None:
    """Return the part of a value that does not fit an annotation; None if the whole value fits.

    The elements of iterators are not checked, and values of unknown types fit.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    here = _Misfit(path, given, annotation)
    if origin in (Union, UnionType):
        found = [_misfit(part, given, path) for part in parts]
        # An error inside the value says more than one about the whole value.
        inside = [one for one in found if one is not None and one.path != path]
        return None if None in found else next(iter(inside), here)
    if origin is Literal:
        return None if (given, type(given)) in [(part, type(part)) for part in parts] else here
    if isinstance(origin, type) and issubclass(origin, Iterable):
        accepted = tuple | list if origin is tuple else origin
        if isinstance(given, _SINGLE) or not isinstance(given, accepted):
            return here
        is_row = origin is tuple and Ellipsis not in parts
        if is_row and len(tuple(given)) != len(parts):
            return here
        elements = _elements(parts, given, path, is_row=is_row)
        return next(filter(None, starmap(_misfit, elements)), None)
    if origin is not None:
        return None if isinstance(given, origin) else here
    return None if _is_instance(annotation, given) else here


def _elements(
    parts: tuple[Any, ...], given: Any, path: str, *, is_row: bool
) -> Iterator[tuple[Any, object, str]]:
    """Yield the elements of a collection, each with its annotation and its path."""
    if isinstance(given, Mapping) and len(parts) == 2:
        for key, value in given.items():
            yield parts[0], key, f"a key of {path}"
            yield parts[1], value, f"{path}[{key!r}]"
    elif isinstance(given, Collection):
        kinds = parts if is_row else repeat(parts[0])
        for index, (kind, value) in enumerate(zip(kinds, given, strict=False)):
            yield kind, value, f"{path}[{index}]"


def _is_instance(kind: Any, given: Any) -> bool:
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if kind is TopicPartition:
        return isinstance(given, kind) and isinstance(given[0], str) and type(given[1]) is int
    if kind in (int, float):
        return isinstance(given, int | kind) and not isinstance(given, bool)
    return isinstance(given, kind)


def _words(annotation: Any) -> str:
    """Return an annotation as text, without the names of modules."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__name__
    return re.sub(r"\b[a-z_]+\.", "", str(annotation))


def name_list(given: Names) -> list[str]:
    """Return the names in `given`. Raises ClientError."""
    wanted = [given] if isinstance(given, str) else list(given)
    for name in wanted:
        if not isinstance(name, str):
            raise ClientError(ErrorCode.INVALID_REQUEST, f"{name!r} is no name: give strings")
    return wanted


def partition_list(given: Partitions) -> list[TopicPartition]:
    """Return the partitions in `given`. Raises ClientError that says what to write instead."""
    wanted = [given] if isinstance(given, _SINGLE) else list(given)
    found: list[TopicPartition] = []
    for one in wanted:
        pair = one if isinstance(one, tuple) and len(one) == 2 else (None, None)
        if not isinstance(pair[0], str) or type(pair[1]) is not int:
            raise wrong(
                "a partition",
                one,
                "TopicPartition(topic, number); whole topics are read by `subscribe`, as a member"
                " of a group",
            )
        found.append(TopicPartition(pair[0], pair[1]))
    return found


def checked_options(given: Mapping[str, object], defaults: Options, kind: type[Options]) -> Options:
    """Return the options with defaults filled in.

    Raises TypeError for a name that `kind` does not declare, ClientError for an invalid value.
    """
    hints = type_hints(kind)
    found = dict(given)
    for short, name in _SHORT.items():
        if short in found and name in hints:
            if name in found:
                raise TypeError(f"{short} is short for {name}: give one of them")
            found[name] = found.pop(short)
    for name, value in found.items():
        if name not in hints:
            raise _unknown_option(kind.__name__.removesuffix("Options"), name, hints)
        misfit = _misfit(hints[name], value, name)
        if misfit is not None:
            raise wrong(misfit.path, misfit.given, _words(misfit.annotation))
        least = 1 if name.endswith("_bytes") or name in _AT_LEAST_ONE else 0
        if type(value) is int and value < least and name not in ("acks", "compression_level"):
            raise wrong(name, value, f"a number from {least} on")
    return cast("Options", {**defaults, **found})


def _unknown_option(called: str, name: str, known: Collection[str]) -> TypeError:
    """Return the error for an unknown option, naming the option that was probably meant."""
    what = f"{called}() takes no {name!r}"
    wanted = OTHER_OPTIONS.get(name)
    near = [wanted] if wanted in known else get_close_matches(name, known, n=1, cutoff=0.8)
    if near:
        return TypeError(f"{what}; did you mean {near[0]}?")
    return TypeError(f"{what}; {NO_OPTIONS.get(name) or 'it takes ' + ', '.join(sorted(known))}")


def one_partition(partition: TopicPartition | str, number: int | None) -> TopicPartition:
    """Return one partition, given as a TopicPartition or as topic and number.

    Raises ClientError.
    """
    if not isinstance(partition, str):
        return partition
    if number is None:
        raise wrong("partition", number, "the number of a partition after the topic")
    return TopicPartition(partition, number)


def not_negative(name: str, given: float) -> None:
    """Raise ClientError if a number is below 0."""
    if not given >= 0:
        raise wrong(name, given, "a number from 0 on")
