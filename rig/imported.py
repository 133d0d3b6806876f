"""Finds imports of names that are not there, in tests and all else beside the package.

Part of `make check`: the type checker reads the package alone, and a test whose import broke,
because another change moved the name meanwhile, is noticed only when it runs.
"""

import ast
import sys
from functools import cache
from pathlib import Path

from rig.paths import ROOT

_FOLDERS = ("bench", "chaos", "demo", "docs", "examples", "rig", "suites", "tests", "verify")


def main() -> int:
    """Print the imports that lead nowhere; 1 if there are any."""
    found = [
        problem
        for folder in _FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for problem in missing(path)
    ]
    for problem in found:
        sys.stdout.write(f"{problem}\n")
    return int(bool(found))


def missing(path: Path) -> list[str]:
    """What `path` imports of the project by `from … import …`, and no module defines."""
    found = []
    for node in ast.walk(_parsed(path)):
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        if node.module.partition(".")[0] not in ("ottla", *_FOLDERS):
            continue
        module = _file(node.module)
        place = f"{path.relative_to(ROOT)}:{node.lineno}"
        if module is None:
            found.append(f"{place}: there is no module {node.module}")
            continue
        known = _names(module)
        found += [
            f"{place}: {node.module} has no {one.name}"
            for one in node.names
            if known is not None
            and one.name not in known
            and one.name != "*"
            and _file(f"{node.module}.{one.name}") is None
        ]
    return found


def _file(module: str) -> Path | None:
    """Where a module of the project is; None where nowhere."""
    root = ROOT / "src" if module.partition(".")[0] == "ottla" else ROOT
    place = root.joinpath(*module.split("."))
    if place.with_suffix(".py").exists():
        return place.with_suffix(".py")
    if (place / "__init__.py").exists():
        return place / "__init__.py"
    return place if place.is_dir() else None


@cache
def _names(path: Path) -> frozenset[str] | None:
    """What a module has at its top; None where only running it would say."""
    if path.is_dir():
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            return None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {one.asname or one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return None if "*" in found else frozenset(found)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


if __name__ == "__main__":
    sys.exit(main())
