"""Checks callers' arguments against the annotations of the called method before any request.

A mistake then raises an error that names the argument, the given and the expected value, instead of
one from deep inside the client or from a broker. Not used for calls made once per record.
"""

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from enum import IntEnum
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import ClientError
from ottla.client.common.other_names import EXAMPLES, NO_OPTIONS, OTHER_OPTIONS
from ottla.client.common.settings import is_known_setting

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Part = TypeVar("Part")
Member = TypeVar("Member", bound=IntEnum)

_SHOWN_MAX = 100
_WORDS: dict[object, str] = {
    str: "a str",
    int: "an int",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    None: "None",
    NoneType: "None",
    TopicPartition: "TopicPartition(topic, number)",
}
_NUMBERS = (int, float)


class Mistake(Exception):  # Converted to a ClientError before users see it.
    """An argument that does not match its annotation: `given`, at `path`, is not `wanted`.

    `is_unknown_name`: `given` is a str, but none of the allowed names.
    """

    def __init__(
        self, path: str, given: object, wanted: str, *, is_unknown_name: bool = False
    ) -> None:
        self.path = path
        self.given = given
        self.wanted = wanted
        self.is_unknown_name = is_unknown_name
        super().__init__(path)

    def error(self, example: str | None = None) -> ClientError:
        """Return the error for users, with a correct example."""
        # The values of a mapping may be secrets.
        shown = "a mapping" if isinstance(self.given, Mapping) else repr(self.given)
        if len(shown) > _SHOWN_MAX:
            shown = f"{shown[:_SHOWN_MAX]}…"
        wanted = f"{self.wanted}; write {example}" if example else self.wanted
        return ClientError(ErrorCode.INVALID_REQUEST, f"{self.path} is {shown}; give {wanted}")


def checks(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap `method` so that arguments that do not fit its annotations raise ClientError.

    Pairs become partitions, and names of enumeration members become the members.
    """

    @wraps(method)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        bound = _fitting(method, arguments, named)
        return method(*bound.args, **bound.kwargs)

    return call


def checks_awaited(
    method: Callable[Parameters, Coroutine[Any, Any, Result]],
) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Wrap as `checks`, but raise the error only when the call is awaited."""

    @wraps(method)
    async def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        bound = _fitting(method, arguments, named)
        return await method(*bound.args, **bound.kwargs)

    return call


def checks_calls(part: type[Part]) -> type[Part]:
    """Wrap all public coroutine functions of a class with `checks_awaited`."""
    for name, method in list(vars(part).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(part, name, checks_awaited(method))
    return part


def mistake_in(method: Callable[..., object], given: Mapping[str, object]) -> ClientError | None:
    """Return the error for the first wrong argument of `method`; None if all are valid."""
    hints = _hints(method)
    try:
        for name, value in given.items():
            taken(hints[name], value, name)
    except Mistake as mistake:
        return mistake.error()
    return None


def taken(kind: Any, given: Any, path: str) -> Any:
    """Convert `given` to the annotation `kind`. Raises Mistake."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _one_of(kind, given, path)
    if origin is Literal:
        if any(given == each and type(given) is type(each) for each in get_args(kind)):
            return given
        raise Mistake(path, given, words(kind), is_unknown_name=isinstance(given, str))
    if origin is not None:
        return _generic(kind, origin, given, path)
    if not isinstance(kind, type) or _is_protocol(kind):
        return _as_is(kind, given, path)
    return _instance(kind, given, path)


def member(kind: type[Member], given: Member | str) -> Member:
    """Return a member of an enumeration, given as such or by its name. Raises ClientError."""
    try:
        return cast("Member", taken(kind, given, kind.__name__))
    except Mistake as mistake:
        raise mistake.error() from None


def words(kind: Any) -> str:
    """Describe an annotation in words."""
    origin = get_origin(kind)
    parts = get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(words(part) for part in parts))
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is re.Pattern:
        return "a compiled pattern of str"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {words(parts[0])} to {words(parts[1])}"
    if origin is tuple and parts[-1] is not Ellipsis:
        return f"({', '.join(words(part) for part in parts)})"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"several of: {words(parts[0])}"
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
    if kind in _WORDS:
        return _WORDS[kind]
    return "a callable" if origin is not None else getattr(kind, "__name__", str(kind))


def _fitting(
    method: Callable[..., object], arguments: tuple[Any, ...], named: dict[str, Any]
) -> inspect.BoundArguments:
    signature = _signature(method)
    try:
        bound = signature.bind(*arguments, **named)
    except TypeError as error:
        raise _not_called_so(method, signature, named, str(error)) from None
    hints = _hints(method)
    try:
        for name, given in bound.arguments.items():
            if name == "bootstrap_servers" and isinstance(given, Mapping):
                # A mapping of settings, as other clients take it, is not a list of addresses.
                raise Mistake(name, given, words(hints[name]))
            if name in hints:
                bound.arguments[name] = taken(hints[name], given, name)
    except Mistake as mistake:
        raise mistake.error(EXAMPLES.get(_called(method))) from None
    return bound


def unknown_keyword(called: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for an unknown keyword argument of `called`, naming a similar one."""
    known = [each for each in known if each not in ("self", "options")]
    wanted = OTHER_OPTIONS.get(name, name)
    near = [wanted] if wanted in known else get_close_matches(name, known, n=1, cutoff=0.6)
    if wanted not in known:
        if name in NO_OPTIONS:
            return TypeError(f"{called}() takes no {name!r}; {NO_OPTIONS[name]}")
        if is_known_setting(name.replace("_", ".")):
            # A different setting, so similarly spelled names would mislead.
            return TypeError(f"{called}() takes no {name!r}: this client has no such setting")
    if not near:
        return TypeError(f"{called}() takes no {name!r}; it takes {', '.join(sorted(known))}")
    unit = ", in seconds" if near == ["timeout"] and name != "timeout" else ""
    return TypeError(f"{called}() takes no {name!r}; did you mean {near[0]}{unit}?")


def _not_called_so(
    method: Callable[..., object],
    signature: inspect.Signature,
    named: Mapping[str, object],
    why: str,
) -> TypeError:
    """Return the error for arguments that `method` cannot be called with."""
    called = _called(method)
    for name in named:
        if name not in signature.parameters and "options" not in signature.parameters:
            return unknown_keyword(called, name, signature.parameters)
    example = EXAMPLES.get(called)
    return TypeError(f"{called}(): {why}{f'; write {example}' if example else ''}")


def _called(method: Callable[..., object]) -> str:
    """Return the name that users call: a class, or a method with its class."""
    return method.__qualname__.removesuffix(".__init__")


@cache
def _signature(method: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _hints(method: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of parameters, except `options`, which is checked separately."""
    hints = get_type_hints(method)
    return {name: kind for name, kind in hints.items() if name not in ("return", "options")}


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the annotated fields of a dataclass or a named tuple."""
    is_record = is_dataclass(kind) or (issubclass(kind, tuple) and "_fields" in vars(kind))
    return get_type_hints(kind) if is_record else {}


def _one_of(union: Any, given: Any, path: str) -> Any:
    """Convert `given` to the first type of `union` that it matches.

    If it matches none, raise the most deeply nested mistake.
    """
    deepest = Mistake(path, given, words(union))
    for kind in get_args(union):
        try:
            return taken(kind, given, path)
        except Mistake as mistake:
            if len(mistake.path) > len(deepest.path):
                deepest = mistake
            elif mistake.path == path:
                deepest.is_unknown_name |= mistake.is_unknown_name
    raise deepest


def _generic(kind: Any, origin: Any, given: Any, path: str) -> Any:
    parts = get_args(kind)
    if origin is re.Pattern:
        if isinstance(given, re.Pattern) and isinstance(given.pattern, str):
            return given
        raise Mistake(path, given, words(kind))
    if not issubclass(origin, Iterable):
        return _as_is(kind, given, path)
    if issubclass(origin, Mapping):
        if not isinstance(given, Mapping):
            raise Mistake(path, given, words(kind))
        return {
            taken(parts[0], key, f"a key of {path}"): taken(parts[1], value, f"{path}[{key!r}]")
            for key, value in given.items()
        }
    # A str is an iterable of its letters, and a partition an iterable of its two fields.
    if isinstance(given, str | bytes | TopicPartition) or not isinstance(given, Iterable):
        raise Mistake(path, given, words(kind))
    if origin is tuple and parts[-1] is not Ellipsis:
        return _row(kind, parts, tuple(given), path)
    each = [taken(parts[0], one, f"{path}[{index}]") for index, one in enumerate(given)]
    return tuple(each) if origin is tuple else each


def _row(kind: Any, parts: tuple[Any, ...], given: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if len(given) != len(parts):
        raise Mistake(path, given, words(kind))
    return tuple(
        taken(part, one, f"{path}[{index}]")
        for index, (part, one) in enumerate(zip(parts, given, strict=True))
    )


def _as_is(kind: Any, given: Any, path: str) -> Any:
    """Accept a callable, or a value that cannot be checked, unchanged."""
    if get_origin(kind) is not None and not callable(given):
        raise Mistake(path, given, words(kind))
    return given


def _instance(kind: type, given: Any, path: str) -> Any:
    if kind is TopicPartition:
        return _partition(given, path)
    if issubclass(kind, IntEnum):
        return _member(kind, given, path)
    fits = isinstance(given, _NUMBERS if kind is float else kind)
    if not fits or (isinstance(given, bool) and kind in _NUMBERS):
        raise Mistake(path, given, words(kind))
    record: Any = kind
    for name, field in _fields(record).items():
        taken(field, getattr(given, name), f"{path}.{name}")
    return given


def _partition(given: Any, path: str) -> TopicPartition:
    if isinstance(given, tuple | list) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and isinstance(number, int) and not isinstance(number, bool):
            return given if isinstance(given, TopicPartition) else TopicPartition(topic, number)
    raise Mistake(path, given, words(TopicPartition))


def _member(kind: type[IntEnum], given: Any, path: str) -> IntEnum:
    if isinstance(given, kind):
        return given
    for member in kind:
        if isinstance(given, str):
            if given.lower().replace("-", "_") == member.name.lower():
                return member
        elif not isinstance(given, bool) and given == member:
            return member
    raise Mistake(path, given, words(kind))


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))
