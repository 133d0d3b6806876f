"""What callers give, compared with the annotations of what they call, before a request is made.

A mistake is then an error that names the argument, what was given and what is wanted, instead of
one from the depths of the client or of a broker. Not for calls that are made once per record.
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


class Mistake(Exception):  # It is turned into a ClientError.
    """`given`, to which `path` leads, is not what `wanted` says.

    `is_unknown_name`: it is a str, and wanted is one of a few.
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
        """As users see it, with an example of what is right."""
        # The values of a mapping may be secrets.
        shown = "a mapping" if isinstance(self.given, Mapping) else repr(self.given)
        if len(shown) > _SHOWN_MAX:
            shown = f"{shown[:_SHOWN_MAX]}…"
        wanted = f"{self.wanted}; write {example}" if example else self.wanted
        return ClientError(ErrorCode.INVALID_REQUEST, f"{self.path} is {shown}; give {wanted}")


def checks(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """`method`, with arguments that fit its annotations; others raise ClientError.

    Pairs become partitions, and names of members of an enumeration those members.
    """

    @wraps(method)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        bound = _fitting(method, arguments, named)
        return method(*bound.args, **bound.kwargs)

    return call


def checks_awaited(
    method: Callable[Parameters, Coroutine[Any, Any, Result]],
) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """As `checks`; the error comes when the call is awaited."""

    @wraps(method)
    async def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        bound = _fitting(method, arguments, named)
        return await method(*bound.args, **bound.kwargs)

    return call


def checks_calls(part: type[Part]) -> type[Part]:
    """A class whose public coroutine functions check their arguments."""
    for name, method in list(vars(part).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(part, name, checks_awaited(method))
    return part


def mistake_in(method: Callable[..., object], given: Mapping[str, object]) -> ClientError | None:
    """What is wrong with arguments of `method`, by name, that made it fail; None: nothing."""
    hints = _hints(method)
    try:
        for name, value in given.items():
            taken(hints[name], value, name)
    except Mistake as mistake:
        return mistake.error()
    return None


def taken(kind: Any, given: Any, path: str) -> Any:
    """`given` as a value of the annotation `kind`. Raises Mistake."""
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
    """A member of an enumeration, by itself or by its name. Raises ClientError."""
    try:
        return cast("Member", taken(kind, given, kind.__name__))
    except Mistake as mistake:
        raise mistake.error() from None


def words(kind: Any) -> str:
    """An annotation in words."""
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
                # Not the names of settings, as another client has them.
                raise Mistake(name, given, words(hints[name]))
            if name in hints:
                bound.arguments[name] = taken(hints[name], given, name)
    except Mistake as mistake:
        raise mistake.error(EXAMPLES.get(_called(method))) from None
    return bound


def unknown_keyword(called: str, name: str, known: Iterable[str]) -> TypeError:
    """The error for a keyword argument that `called` does not take, naming the nearest."""
    known = [each for each in known if each not in ("self", "options")]
    wanted = OTHER_OPTIONS.get(name, name)
    near = [wanted] if wanted in known else get_close_matches(name, known, n=1, cutoff=0.6)
    if wanted not in known:
        if name in NO_OPTIONS:
            return TypeError(f"{called}() takes no {name!r}; {NO_OPTIONS[name]}")
        if is_known_setting(name.replace("_", ".")):
            # It means something else than any name that is spelled nearly alike.
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
    """The error for arguments that `method` cannot be called with."""
    called = _called(method)
    for name in named:
        if name not in signature.parameters and "options" not in signature.parameters:
            return unknown_keyword(called, name, signature.parameters)
    example = EXAMPLES.get(called)
    return TypeError(f"{called}(): {why}{f'; write {example}' if example else ''}")


def _called(method: Callable[..., object]) -> str:
    """What a user calls: a class, or a method with its class."""
    return method.__qualname__.removesuffix(".__init__")


@cache
def _signature(method: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(method)


@cache
def _hints(method: Callable[..., object]) -> dict[str, Any]:
    """Annotations of parameters; options have an error of their own."""
    hints = get_type_hints(method)
    return {name: kind for name, kind in hints.items() if name not in ("return", "options")}


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Annotated fields of a dataclass or a named tuple."""
    is_record = is_dataclass(kind) or (issubclass(kind, tuple) and "_fields" in vars(kind))
    return get_type_hints(kind) if is_record else {}


def _one_of(union: Any, given: Any, path: str) -> Any:
    """By the first part of `union` that fits; else the mistake that lies deepest says most."""
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
    # A str is an iterable of its letters, and a partition one of its two fields.
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
    """Callables; what cannot be compared is taken for what it should be."""
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
