"""Finds code of the package that only tests call; part of `make check`.

A public function, class or method of `src/ottla` must be referenced by the package, or by what is
beside it and no test. Functions and classes are followed through their imports. Methods are known
by name alone, so that one is taken for used where another of that name is. Not looked at: the
messages of the protocol, which are declarations, and `ottla.testing`, which is for tests.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rig.paths import ROOT

SOURCE = ROOT / "src"
_USERS = ("src/ottla", "bench", "chaos", "demo", "examples", "docs", "verify")
_PUBLIC_NAMES = ROOT / "tests" / "unit" / "public" / "names.txt"
_DECLARATIONS = ("ottla.wire.messages.", "ottla.wire.stored", "ottla.testing.")
# The compiler of messages gives these to the code that it generates, by their names.
_GENERATED = "ottla.wire.primitive"
_NEUTRAL_BASES = {"ABC", "Enum", "Exception", "Generic", "IntEnum", "NamedTuple", "Protocol",
                  "StrEnum", "object"}  # fmt: skip
# These decorators call nothing: other ones may register what they decorate.
_NEUTRAL_DECORATORS = {"abstractmethod", "cached_property", "classmethod", "contextmanager",
                       "asynccontextmanager", "dataclass", "override", "property", "setter",
                       "staticmethod", "cache", "lru_cache", "total_ordering"}  # fmt: skip

# What only tests call for a reason.
ALLOWED: dict[str, str] = {
    "ottla.lake.edges.datasource.UnlimitedReader.latestOffset": "Spark 4.0 and 4.1 call it",
}


class Definition(NamedTuple):
    """Something public. `begin` and `end` are its lines: it does not use itself."""

    module: str
    name: str
    owner: str | None
    begin: int
    end: int

    def __str__(self) -> str:
        parts = (self.module, self.owner, self.name)
        return ".".join(part for part in parts if part is not None)


class User(NamedTuple):
    """What one file refers to: names and attributes with their lines, and what it imports."""

    module: str
    is_package: bool
    names: list[tuple[str, int]]
    attributes: list[tuple[str, int]]
    imported: set[tuple[str, str]]


def main() -> int:
    """Print what only tests call, and stale entries of the list; 1 for the former."""
    unused = {str(definition) for definition in find()}
    for name in sorted(unused - set(ALLOWED)):
        print(f"only tests call {name}: use it or remove it")
    for name in sorted(set(ALLOWED) - unused):
        print(f"{name} is used, or gone: take it off the list in rig/unused.py")
    return int(bool(unused - set(ALLOWED)))


def find() -> list[Definition]:
    """Everything public that no user refers to."""
    trees = {
        path: ast.parse(path.read_text()) for user in _USERS for path in (ROOT / user).rglob("*.py")
    }
    modules = {path: name_of(path) for path in trees}
    users = [user_of(modules[path], path, tree) for path, tree in trees.items()]
    known = {name for name in modules.values() if name.startswith("ottla")}
    imported = followed(users)
    attributes: dict[str, list[tuple[str, int]]] = {}
    for user in users:
        for name, line in user.attributes:
            attributes.setdefault(name, []).append((user.module, line))
    by_module = {user.module: user for user in users}
    public = public_names()
    unused: list[Definition] = []
    for path, tree in trees.items():
        module = modules[path]
        if module not in known or module.startswith((*_DECLARATIONS, _GENERATED)):
            continue
        for found in definitions(module, tree):
            if found.name in public or f"{found.owner}.{found.name}" in public:
                continue
            places = attributes.get(found.name, [])
            if found.owner is None:
                package, _, last = module.rpartition(".")
                importers = {
                    u.module for u in users if {(package, last), (module, "")} & u.imported
                }
                used = (
                    (module, found.name) in imported
                    or any(n == found.name and outside(found, module, line)
                           for n, line in by_module[module].names)
                    or any(place in importers for place, _ in places)
                )  # fmt: skip
            else:
                used = any(outside(found, place, line) for place, line in places)
            if not used:
                unused.append(found)
    return unused


def outside(found: Definition, module: str, line: int) -> bool:
    """Whether a reference is not a part of the definition itself."""
    return module != found.module or not found.begin <= line <= found.end


def public_names() -> set[str]:
    """What users of the package may call: `Admin`, `Admin.close`."""
    names: set[str] = set()
    for line in _PUBLIC_NAMES.read_text().split():
        _, _, rest = line.partition(".")
        names.add(rest.partition(".")[2])
    return names


def followed(users: list[User]) -> set[tuple[str, str]]:
    """Imports, and what they stand for where a package exports names of its modules.

    What a package imports and does not mention again, it only exports.
    """
    exports = {user.module: user.imported for user in users if user.is_package}
    found: set[tuple[str, str]] = set()
    for user in users:
        mentioned = {name for name, _ in user.names}
        found |= {(module, name) for module, name in user.imported
                  if not user.is_package or name in mentioned}  # fmt: skip
    pending = list(found)
    while pending:
        module, name = pending.pop()
        for origin in exports.get(module, ()):
            if origin[1] == name and origin not in found:
                found.add(origin)
                pending.append(origin)
    return found


def name_of(path: Path) -> str:
    """The dotted name of a module; of a script, its path."""
    if not path.is_relative_to(SOURCE):
        return str(path.relative_to(ROOT))
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def user_of(module: str, path: Path, tree: ast.Module) -> User:
    """What a file refers to; a word in quotation marks may be a reference."""
    user = User(module, path.name == "__init__.py", [], [], set())
    exported = {id(word) for node in tree.body if isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "__all__"
                for word in ast.walk(node)}  # fmt: skip
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=origin) if origin:
                user.imported.update((origin, alias.name) for alias in node.names)
            case ast.Import():
                user.imported.update((alias.name, "") for alias in node.names)
            case ast.Name(id=name, ctx=ast.Load()):
                user.names.append((name, node.lineno))
            case ast.Attribute(attr=name, ctx=ast.Load()):
                user.attributes.append((name, node.lineno))
            case ast.Constant(value=str(word)) if word.isidentifier() and id(node) not in exported:
                user.names.append((word, node.lineno))
                user.attributes.append((word, node.lineno))
    return user


def definitions(module: str, tree: ast.Module) -> Iterator[Definition]:
    """Public functions and classes of a module, and the methods of its classes."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in tree.body:
        if isinstance(node, (*functions, ast.ClassDef)) and is_plain(node):
            yield Definition(module, node.name, None, node.lineno, node.end_lineno or 0)
        if isinstance(node, ast.ClassDef) and not has_foreign_base(node, tree):
            for part in node.body:
                if isinstance(part, functions) and is_plain(part):
                    end = part.end_lineno or 0
                    yield Definition(module, part.name, node.name, part.lineno, end)


def is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether it is public, and no decorator may have registered it."""
    decorators = {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list}
    return not node.name.startswith("_") and decorators <= _NEUTRAL_DECORATORS


def has_foreign_base(node: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether a base of another project may call the methods."""
    ours = {part.name for part in tree.body if isinstance(part, ast.ClassDef)}
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom) and (part.module or "").startswith("ottla"):
            ours |= {alias.asname or alias.name for alias in part.names}
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
    return not bases <= ours | _NEUTRAL_BASES


if __name__ == "__main__":
    sys.exit(main())
