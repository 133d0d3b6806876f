"""What users import is a list that changes on purpose only.

`names.txt` has a line for each public name, each public member of its classes, and whatever else
`dir` shows of a client.
`python tests/unit/public/test_public_names.py` writes it anew: look at the difference before you
commit it, since every line that goes breaks somebody's program. The list is frozen for 0.1: a
commit that changes it needs a line in CHANGELOG.md.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from ottla import _compiled, client, testing
from ottla.client import sync

PACKAGES = ("ottla.client", "ottla.client.sync", "ottla.lake", "ottla.testing")
LIST = Path(__file__).with_name("names.txt")


def public_names() -> Iterator[str]:
    """Every public name, with the members of classes that are our own."""
    for package in PACKAGES:
        module = import_module(package)
        for name in sorted(module.__all__):
            yield f"{package}.{name}"
            value = getattr(module, name)
            if inspect.isclass(value):
                found = sorted({*members(value), *MADE.get(f"{package}.{name}", lambda: ())()})
                yield from (f"{package}.{name}.{member}" for member in found)


def members(found: type) -> list[str]:
    """Public members that Ottla's own classes define; inherited ones of others do not count."""
    own = [base for base in found.__mro__ if base.__module__.startswith("ottla.")]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def shown(made: object) -> Iterator[str]:
    """What `dir` shows of an object, with the parts of an `Admin`."""
    for name in dir(made):
        if name.startswith("_"):
            continue
        yield name
        if type(made).__name__ == "Admin" and not callable(part := getattr(made, name)):
            yield from (f"{name}.{call}" for call in dir(part) if not call.startswith("_"))


def shown_of(kind: Callable[..., object]) -> list[str]:
    """What `dir` shows of a client, made and closed again."""

    async def make() -> list[str]:
        async with kind("localhost:1") as made:  # type: ignore[attr-defined]
            return list(shown(made))

    return asyncio.run(make())


def shown_of_plain(kind: Callable[..., object]) -> list[str]:
    """The same of a client of plain calls."""
    with kind("localhost:1") as made:  # type: ignore[attr-defined]
        return list(shown(made))


# Attributes that instances have beside those of their class.
MADE: dict[str, Callable[[], Iterable[str]]] = {
    "ottla.client.Admin": partial(shown_of, client.Admin),
    "ottla.client.Consumer": partial(shown_of, client.Consumer),
    "ottla.client.Producer": partial(shown_of, client.Producer),
    "ottla.client.sync.Admin": partial(shown_of_plain, sync.Admin),
    "ottla.client.sync.Consumer": partial(shown_of_plain, sync.Consumer),
    "ottla.client.sync.Producer": partial(shown_of_plain, sync.Producer),
    "ottla.testing.Broker": lambda: shown(testing.Broker()),
}


def test_public_names_are_those_of_the_list() -> None:
    """A name that appears or goes is a decision, not an accident."""
    assert list(public_names()) == LIST.read_text().splitlines()


def test_dir_shows_what_users_call_and_nothing_else() -> None:
    """No submodules, no type variables."""
    for package in PACKAGES:
        if package != "ottla.lake":
            module = import_module(package)
            assert dir(module) == sorted(module.__all__)


def test_everything_that_is_public_says_what_it_is() -> None:
    """`help` of a public class or function is never empty."""
    silent = []
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            # Compilation drops docstrings.
            if not value.__doc__ and not _compiled.status().get(value.__module__):
                silent.append(f"{package}.{name}")
    assert silent == []


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")
