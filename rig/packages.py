"""Circles of packages, read from the imports of their modules; `rig.house` counts them.

The packages inside one parent are compared, and beside them, as one more package, the modules that
lie loose in the parent: `ottla.quota.table` and `ottla.quota.table` are both of `ottla.quota`. A
parent's `__init__` is left out: it names what the packages below it offer.
"""

from collections.abc import Iterable

# By package, the packages beside it that its modules import.
Packages = dict[str, set[str]]


def packages_of(parent: str, imports: dict[str, set[str]], folders: set[str]) -> Packages:
    """What the packages inside `parent` import of each other."""
    found: Packages = {}
    for module, imported in imports.items():
        if _inside(parent, module):
            package = _package(parent, module, folders)
            others = {_package(parent, o, folders) for o in imported if _inside(parent, o)}
            found.setdefault(package, set()).update(others - {package})
    return found


def pairs(packages: Packages) -> Iterable[tuple[str, str]]:
    """The packages that import each other."""
    for one, others in packages.items():
        for other in others:
            if one < other and one in packages[other]:
                yield one, other


def _inside(parent: str, module: str) -> bool:
    return module.startswith(f"{parent}.")


def _package(parent: str, module: str, folders: set[str]) -> str:
    child = ".".join(module.split(".")[: parent.count(".") + 2])
    return child if child in folders else parent
