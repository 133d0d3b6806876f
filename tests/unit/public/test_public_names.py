"""What users import is a list that changes on purpose only.

`names.txt` has a line for each public name and each public member of its classes.
`python tests/unit/public/test_public_names.py` writes it anew: look at the difference before you
commit it, since every line that goes breaks somebody's program.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

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
                yield from (f"{package}.{name}.{member}" for member in members(value))


def members(found: type) -> list[str]:
    """Public members that Ottla's own classes define; inherited ones of others do not count."""
    own = [base for base in found.__mro__ if base.__module__.startswith("ottla.")]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def test_public_names_are_those_of_the_list() -> None:
    """A name that appears or goes is a decision, not an accident."""
    assert list(public_names()) == LIST.read_text().splitlines()


def test_everything_that_is_public_says_what_it_is() -> None:
    """`help` of a public class or function is never empty."""
    silent = []
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and not value.__doc__:
                silent.append(f"{package}.{name}")
    assert silent == []


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")
