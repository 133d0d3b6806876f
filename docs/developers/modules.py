"""Writes modules.md: every package and module of Ottla with the first line of its docstring.

`make docs` runs it. The page is not committed: it changes with every module.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parents[1] / "src" / "ottla"
PAGE = DOCS / "modules.md"
_HEAD = """# Every module, by package

What a package is for stands under its name, then each of its modules in a line. How the packages \
build on each other is told in [ARCHITECTURE.md](../../ARCHITECTURE.md). This page is made by \
`python docs/developers/modules.py` from the first lines of the modules' docstrings.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for package in packages() for line in section(package))])


def packages() -> Iterator[Path]:
    """The folders with modules, outer before inner."""
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    yield from sorted(folders, key=lambda folder: folder.relative_to(SOURCE).parts)


def section(package: Path) -> Iterator[str]:
    """A heading, the package's docstring, and a line for each module."""
    name = ".".join(("ottla", *package.relative_to(SOURCE).parts))
    yield f"## `{name}`\n"
    if text := docstring(package / "__init__.py"):
        yield f"{prose(text)}\n"
    modules = sorted(path for path in package.glob("*.py") if path.name != "__init__.py")
    for path in modules:
        yield f"- `{path.stem}`: {first_line(docstring(path))}"
    if modules:
        yield ""


def docstring(path: Path) -> str:
    """The docstring of a module, empty where there is none."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def first_line(text: str) -> str:
    """The first line, which ends a sentence."""
    return text.partition("\n")[0]


def prose(text: str) -> str:
    """The paragraphs of a docstring that are prose, as one; examples are left out."""
    paragraphs = [
        part
        for part in text.split("\n\n")
        if not part.startswith((" ", "-", "@")) and not part.endswith(":")
    ]
    return " ".join(" ".join(part.split()) for part in paragraphs)


if __name__ == "__main__":
    PAGE.write_text(page())
