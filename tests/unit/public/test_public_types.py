"""What public calls take, return and raise can be named by users: it is public itself."""

import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args, get_type_hints

from ottla.client import Admin
from ottla.client.common import errors

from .test_public_names import PACKAGES

# The classes of `admin.topics` and so on, by name.
PARTS = {
    type(part).__name__: type(part)
    for name, part in vars(Admin("localhost:1")).items()
    if name[0] != "_"
}
# Taken or given, and not for users to name, with the reason.
OWN = {
    "Clock": "a simulated clock, given by the simulation",
    "MachineClock": "the same, of one machine",
    "World": "what `simulate` makes a cluster of",
    "ArrowColumn": "a protocol that columns of Arrow fulfil",
    **dict.fromkeys(PARTS, "reached as `admin.topics` and so on"),
}


def public_types() -> set[type]:
    """Classes in the `__all__` of the packages."""
    modules = [import_module(package) for package in PACKAGES]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    return {value for value in found if inspect.isclass(value)}


def named_in(annotation: Any) -> Iterator[type]:
    """Classes of Ottla in an annotation."""
    if inspect.isclass(annotation) and annotation.__module__.startswith("ottla."):
        yield annotation
    for part in annotation if isinstance(annotation, list) else get_args(annotation):
        yield from named_in(part)


def annotations_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Public fields and public methods of a class, constructors of our parts left out."""
    yield from ((name, told) for name, told in get_type_hints(kind).items() if name[0] != "_")
    if issubclass(kind, enum.Enum):
        return
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else member
        is_called = not name.startswith("_") or (name == "__init__" and kind in public_types())
        if inspect.isfunction(function) and is_called and kind.__name__ != "SimulatedCluster":
            yield from ((name, told) for told in get_type_hints(function).values())


def test_what_public_calls_take_and_return_is_exported() -> None:
    """A user can annotate every value, whatever it is a field of."""
    public = public_types()
    modules = [import_module(package) for package in PACKAGES]
    functions = [
        value
        for module in modules
        for value in (getattr(module, name) for name in module.__all__)
        if inspect.isfunction(value)
    ]
    found = {
        f"{kind.__name__}.{where}: {named.__name__}"
        for kind in public | set(PARTS.values())
        for where, annotation in annotations_of(kind)
        for named in named_in(annotation)
        if named not in public and named.__name__ not in OWN
    }
    found |= {
        f"{function.__name__}: {named.__name__}"
        for function in functions
        for annotation in get_type_hints(function).values()
        for named in named_in(annotation)
        if named not in public and named.__name__ not in OWN
    }
    assert found == set()


def test_every_error_is_exported() -> None:
    """What `except` can name."""
    own = {
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, errors.ClientError)
    }
    assert own - public_types() == set()
