"""Declares options of the lake's functions, with defaults, command flags and pipeline keys.

The fields of a TypedDict are declared `Annotated[type, Option(…)]`. Defaults, checks of names and
values, options of commands and keys of pipeline files are all derived from this declaration.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from os import PathLike
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ottla.base import quantities
from ottla.base.errors import WrongWords

O = TypeVar("O")  # noqa: E741  # A TypedDict of options.

# Spans are text (`5m`) or milliseconds; sizes are text (`128Mi`) or bytes.
Span = str | int
Size = str | int


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option, apart from its name and type."""

    help: str = ""
    default: Any = None
    # The flag on the command line; by default derived from the name. None if there is no flag.
    flag: str | None = ""
    key: str | None = None  # The key in a pipeline's file, with its section: `source.from`.
    # An interval is a span above zero.
    unit: Literal["span", "interval", "size"] | None = None
    metavar: str | None = None
    may_be_empty: bool = True


@dataclass(frozen=True, slots=True)
class Declared:
    """An option with its name and type."""

    name: str
    type: Any
    option: Option

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Return the types that a value may have, except None."""
        is_union = get_origin(self.type) in (Union, UnionType)
        found = get_args(self.type) if is_union else (self.type,)
        return tuple(one for one in found if one is not type(None))

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the allowed values; empty if the option has no fixed choices."""
        return tuple(
            word for one in self.kinds if get_origin(one) is Literal for word in get_args(one)
        )

    @property
    def is_flag(self) -> bool:
        return self.kinds == (bool,)

    @property
    def default(self) -> Any:
        """Return the default; False for a flag."""
        return False if self.is_flag else self.option.default

    @property
    def flag(self) -> str | None:
        """Return the flag on the command line; None if there is no flag."""
        given = self.option.flag
        return f"--{self.name.replace('_', '-')}" if given == "" else given

    @property
    def metavar(self) -> str | None:
        """Return the placeholder for the value in help texts."""
        return self.option.metavar or {"span": "SPAN", "size": "SIZE"}.get(self.option.unit or "")

    def read(self, value: Any) -> Any:
        """Check and return a value; a span in milliseconds, a size in bytes. Raises WrongWords."""
        if value is None:
            return None
        if self.choices and value not in self.choices:
            words = ", ".join(self.choices)
            raise WrongWords(f"{self.name} is {value!r}, and not one of {words}")
        if self.option.unit is not None:
            return _READERS[self.option.unit](self.name, value)
        if not any(_fits(value, kind) for kind in self.kinds):
            wanted = " or ".join(dict.fromkeys(_words(kind) for kind in self.kinds))
            # Settings may be secrets.
            is_shown = isinstance(value, bool | int | float | str) and Mapping not in map(
                _plain, self.kinds
            )
            shown = repr(value) if is_shown else f"a value of type {type(value).__name__}"
            raise WrongWords(f"{self.name} is {shown}, and not {wanted}")
        if value == "" and not self.option.may_be_empty:
            raise WrongWords(f"{self.name} is empty: write one, or leave it out")
        return value


def _plain(kind: Any) -> Any:
    """Return a type without its parameters; `object` for one that cannot be checked."""
    plain = get_origin(kind) or kind
    return plain if isinstance(plain, type) and plain is not Any else object


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value has a declared type. Paths may stand for strings."""
    plain = _plain(kind)
    if plain is int:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if plain is str:
        return isinstance(value, str | PathLike)
    if plain is Mapping:
        of_text = get_args(kind)[1] is str
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and (not of_text or isinstance(one, str))
            for name, one in value.items()
        )
    return bool(isinstance(value, plain))


def _words(kind: Any) -> str:
    """Return a type in words."""
    plain = _plain(kind)
    if plain is Mapping:
        return f"a mapping of names to {'strings' if get_args(kind)[1] is str else 'values'}"
    named = {bool: "True or False", str: "a string", int: "a whole number above 0"}
    name = plain.__name__
    return named.get(plain, f"{'an' if name[0] in 'AEIO' else 'a'} {name}")


def _span(name: str, value: Any) -> int:
    found = quantities.span_ms(value) if isinstance(value, str) else value
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise WrongWords(f"{name} is {value!r}, and not a span such as {quantities.SPAN_FORMS}")
    return found


def _interval(name: str, value: Any) -> int:
    found = _span(name, value)
    if not found:
        raise WrongWords(f"{name} is {value!r}, which is too short; write {quantities.SPAN_FORMS}")
    return found


def _size(name: str, value: Any) -> int:
    found = quantities.size_bytes(value) if isinstance(value, str) else value
    if not isinstance(found, int) or isinstance(found, bool) or found <= 0:
        raise WrongWords(f"{name} is {value!r}, and not a size such as {quantities.SIZE_FORMS}")
    return found


_READERS: Mapping[str, Callable[[str, Any], int]] = {
    "span": _span,
    "interval": _interval,
    "size": _size,
}


@cache
def _declared_by(kind: Hashable) -> Mapping[str, Declared]:
    return dict(_declared(kind))


def declared(kind: Any) -> Mapping[str, Declared]:
    """Return the options that a TypedDict declares, by name."""
    return _declared_by(kind)


def _declared(kind: Any) -> Iterator[tuple[str, Declared]]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        inner, option = get_args(hint)[:2]
        assert isinstance(option, Option), f"{kind.__name__}.{name} has no Option"
        yield name, Declared(name, inner, option)


def hint(word: str, known: Iterable[str]) -> str:
    """Return text that suggests the known word nearest to `word`, or names all known words."""
    words = list(known)
    near = get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(words)}"


def filled(kind: type[O], given: O) -> O:
    """Return the given options, with defaults for all other options.

    Raises WrongWords for a name that is not declared, or a wrong value.
    """
    known = declared(kind)
    words: Mapping[str, Any] = given  # type: ignore[assignment]  # A TypedDict is a mapping.
    for name in words:
        if name not in known:
            raise WrongWords(f"there is no option {name}; {hint(name, known)}")
    found: Any = {
        name: one.read(words[name] if words.get(name) is not None else one.default)
        for name, one in known.items()
    }
    return found  # type: ignore[no-any-return]  # As it was declared.
