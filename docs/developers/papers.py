"""Writes papers.md: the points of Kafka's design papers, their code, and their tests.

`python docs/developers/papers.py` brings it up to date. With `--check` it changes nothing, and
exits with 1 if it would. The texts about the points are in papers.toml; the tests are those whose
docstrings cite them.
"""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parents[1]
PAGE = DOCS / "papers.md"
_POINT = re.compile(r"\bP\d{1,2}\b")
_RANGE = re.compile(r"\bP(\d{1,2}) to P(\d{1,2})\b")
_HEAD = """# What Kafka's design papers ask for, and where it is shown

Ottla is built after four texts: the design chapter of Kafka's documentation, and three on its \
replicas and reliability, on fail-over over ZooKeeper, and on leader election and lost records. \
They ask for 42 things. Each is below in a sentence, with the modules that do it, the tests that \
show it, and what today's Kafka and Ottla do otherwise than the texts; where nothing is said, \
nothing differs. A test cites a point by its number; a number without a test fails the suite.

This page is made by `python docs/developers/papers.py` from `papers.toml` and the tests.
"""


def points() -> dict[str, dict[str, Any]]:
    """What is said of each point, by number, in the papers' order."""
    return {number: point for _, found in sections() for number, point in found.items()}


def sections() -> Iterator[tuple[dict[str, str], dict[str, dict[str, Any]]]]:
    """Each section's title and paper, and its points."""
    for section in tomllib.loads((DOCS / "papers.toml").read_text())["section"]:
        told = {name: value for name, value in section.items() if isinstance(value, str)}
        yield told, {name: value for name, value in section.items() if name not in told}


def citations() -> dict[str, dict[str, list[str]]]:
    """Names of tests that cite a point, by point and file."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                for point in cited(ast.get_docstring(node) or ""):
                    file = path.relative_to(ROOT).as_posix()
                    found[point].setdefault(file, []).append(node.name)
    return found


def cited(text: str) -> set[str]:
    """The points a docstring cites: `P3`, or `P16 to P18`."""
    ranges = [range(int(first), int(last) + 1) for first, last in _RANGE.findall(text)]
    return {*_POINT.findall(text), *(f"P{number}" for span in ranges for number in span)}


def page() -> str:
    """The whole document."""
    tests = citations()
    parts = [_HEAD]
    for section, found in sections():
        parts.append(f"## {section['title']}\n\nFrom {section['paper']}.\n")
        parts += [_point(number, point, tests[number]) for number, point in found.items()]
    return "\n".join(parts)


def where(module: str) -> Path:
    """The file or folder that a name in the table stands for."""
    return (
        ROOT / module
        if module.startswith(("examples/", "verify/"))
        else ROOT / "src" / "ottla" / module
    )


def _point(number: str, point: dict[str, Any], tests: dict[str, list[str]]) -> str:
    code = ", ".join(
        f"[`{name}`](../../{where(name).relative_to(ROOT).as_posix()})" for name in point["code"]
    )
    lines = [f"### {number}. {point['title']}", "", point["says"], "", f"- Where: {code}"]
    lines.append("- Shown by:")
    for file, names in tests.items():
        shown = ", ".join(f"`{name}`" for name in names)
        lines.append(f"  - [{file.removeprefix('tests/')}](../../{file}): {shown}")
    if "differs" in point:
        lines.append(f"- Differs: {point['differs']}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Rewrite the document, or tell whether it is up to date."""
    made = page()
    if PAGE.exists() and PAGE.read_text() == made:
        return 0
    sys.stdout.write(f"{PAGE.name} changes\n")
    if "--check" in arguments:
        return 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
