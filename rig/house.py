"""Counts of the structure, printed by `make check`; none may grow.

`python -m rig.house` prints each count, what it may be at most today, and the goal. Imports are
read as text: those under TYPE_CHECKING count, and those of modules by their names as strings.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rig.packages import packages_of, pairs
from rig.paths import ROOT

SOURCE = ROOT / "src"
# A folder of one kind of thing each, which may be long.
_LISTS = ("handlers", "messages")
_LOOSE_MAX = 25
# Their classes have the names of Kafka's messages and APIs, or of the asynchronous client's.
_NAMED_BY_OTHERS = (
    "ottla.wire.messages.", "ottla.wire.stored", "ottla.broker.handlers.", "ottla.client.sync",
)  # fmt: skip


def _of(package: str, *names: str) -> frozenset[str]:
    return frozenset(f"ottla.{package}.{name}" for name in names)


# Subjects without a name, "tell" and "hear of" for send, answer, report, log or receive, a clause
# with "who" in place of a noun ("for who takes over"), and words that were Ottla's own.
_RIDDLES = re.compile(
    r"\b(who(m)?ever|(some|every|any)(body|one)|nobody|wherever|told|tells?|telling"
    r"|hears? (of|from)|heard (of|from)|lest|letterhead|chronicle)\b"
    r"|\b(by|for|to|from|than) who\b",
    re.IGNORECASE,
)
# Names of variables, functions and classes have them, too.
_RIDDLE_NAMES = frozenset(
    ("tell", "tells", "told", "telling", "hear", "hears", "heard", "hearing", "who", "whoever",
     "nobody", "somebody", "everybody", "anybody")
)  # fmt: skip
# Modules and packages that end with "ing" and are nouns: `ottla.testing` is what users import.
_NOUNS = frozenset(("setting", "testing"))
# The packages whose messages and help texts users read.
_SPEAKING = tuple(
    f"ottla.{name}." for name in ("base", "broker", "cli", "client", "diagnosis", "operations")
)
# Documents for users and contributors; the others have not been read with this eye.
_DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    *(
        f"docs/{path.relative_to(ROOT / 'docs').as_posix()}"
        for folder in ("tutorial", "how-to", "explanation")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
    "docs/README.md",
    "docs/performance.md",
    "docs/reference/clients.md",
    "docs/reference/differences.md",
    "docs/reference/limits.md",
)

# Circles of imports that stay, and why.
EXPLAINED = {
    # A service is handed the connection that it serves; a connection makes its service's shell.
    _of("network", "connection", "service"),
    # A world has machines; a machine acts in its world.
    _of("testing.simulation.machine", "machine", "world"),
}


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted; it may not be above `today`, and is to be at most `goal`."""

    what: str
    found: int
    today: int
    goal: int


def counts() -> list[Count]:
    """All counts of the source as it stands."""
    modules = {name_of(path): path for path in (SOURCE / "ottla").rglob("*.py")}
    texts = {name: path.read_text() for name, path in modules.items()}
    graph = imports(texts)
    circles = [frozenset(circle) for circle in circles_of(graph)]
    broker = [text for name, text in texts.items() if name.startswith("ottla.broker")]
    folders = {name for name, path in modules.items() if path.name == "__init__.py"}
    packages = [packages_of(folder, graph, folders) for folder in folders]
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    return [
        Count("modules in the largest circle of imports", max(map(len, circles), default=0), 2, 3),
        Count("circles without an explanation", sum(c not in EXPLAINED for c in circles), 0, 0),
        Count("modules that import the class Broker", sum(map(imports_broker, texts.values())),
              7, 8),
        Count("blocks under TYPE_CHECKING", sum(map(hidden_blocks, texts.values())), 7, 30),
        Count("hasattr in broker/", sum(len(re.findall(r"\bhasattr\(", t)) for t in broker), 0, 0),
        Count("folders with more than 25 loose files", len(list(wide_folders(modules.values()))),
              0, 0),
        Count("class names of more than one module", len(shared_names(texts)), 18, 18),
        Count("riddle words in docstrings and comments", sum(map(riddles, texts.values())), 0, 0),
        Count("riddle words in messages and help",
              sum(message_riddles(t) for name, t in texts.items() if name.startswith(_SPEAKING)),
              0, 0),
        Count("riddle words in documents", sum(map(document_riddles, _DOCUMENTS)), 0, 0),
        Count("identifiers with a riddle word", sum(map(riddle_names, texts.values())), 0, 0),
        Count("packages in the largest circle of packages",
              max((len(circle) for beside in packages for circle in circles_of(beside)), default=1),
              1, 1),
        Count("pairs of packages that import each other",
              sum(len(list(pairs(beside))) for beside in packages), 0, 0),
        Count("modules named by a gerund", sum(map(gerund, modules)), 8, 30),
        Count("files of less than 40 lines",
              sum(lines[name] < 40 for name in modules if name not in folders), 20, 80),
        Count("files of less than 60 lines with one importer",
              sum(lines[name] < 60 for name in with_one_importer(texts) - folders), 7, 30),
        Count("lines in src/", sum(lines.values()), 152_300, 125_000),
        Count("files in src/", len(modules), 935, 1_050),
    ]  # fmt: skip


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(texts: dict[str, str], *, strings: bool = True) -> dict[str, set[str]]:
    """By module, the modules of ours that it imports, wherever in its text."""
    found: dict[str, set[str]] = {}
    for name, text in texts.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= {name if name in texts else node.module for name in names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and strings:
                wanted.add(node.value.partition(":")[0])
        found[name] = {module for module in wanted if module in texts and module != name}
    return found


def circles_of(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of two and more modules each of which reaches all the others (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            circle = set()
            while module not in circle:
                circle.add(stack.pop())
            if len(circle) > 1:
                found.append(circle)

    sys.setrecursionlimit(10_000)
    for module in graph:
        if module not in index:
            visit(module)
    return found


def with_one_importer(texts: dict[str, str]) -> set[str]:
    """The modules that one other imports; messages and handlers apart, which are one per API.

    A command is loaded by its name: no module imports it.
    """
    importers: dict[str, int] = {}
    for imported in imports(texts, strings=False).values():
        for module in imported:
            importers[module] = importers.get(module, 0) + 1
    return {
        module
        for module, count in importers.items()
        if count == 1 and module.split(".")[-2] not in _LISTS
    }


def gerund(module: str) -> bool:
    """Whether a module or package is named for what it does (`reading`), not for what it is."""
    word = re.split(r"[._]", module)[-1]
    return word.endswith("ing") and word not in _NOUNS


def riddle_names(text: str) -> int:
    """How often names in code have one of the riddle words, as `told_ms` or `MustTell` have.

    `tell` alone is the method of Python's files.
    """
    names = (
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and token.string != "tell"
    )
    return sum(
        not _RIDDLE_NAMES.isdisjoint(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n).lower().split("_"))
        for n in names
    )


def imports_broker(text: str) -> bool:
    """Whether a module knows the whole broker."""
    return bool(re.search(r"^\s*from ottla\.broker\S* import [^\n]*\bBroker\b", text, re.MULTILINE))


def hidden_blocks(text: str) -> int:
    """Blocks of imports for the type checker alone."""
    return len(re.findall(r"^if TYPE_CHECKING", text, re.MULTILINE))


def shared_names(texts: dict[str, str]) -> dict[str, list[str]]:
    """Class names that several modules define, with these modules; messages and handlers apart.

    What is blocking has the name of what it wraps: `ottla.client.sync` is apart, too.
    """
    found: dict[str, list[str]] = {}
    for module, text in texts.items():
        if not module.startswith(_NAMED_BY_OTHERS):
            for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
                found.setdefault(name, []).append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def riddles(text: str) -> int:
    """Words in docstrings and comments that leave a reader to find out whom or what they mean."""
    return sum(len(_RIDDLES.findall(prose)) for prose in prose_of(text))


def message_riddles(text: str) -> int:
    """The same words in log lines, error messages and help texts."""
    return sum(len(_RIDDLES.findall(message)) for message in messages_of(text))


def document_riddles(path: str) -> int:
    """The same words in a document, code blocks and quoted code apart."""
    text = re.sub(
        r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", "", (ROOT / path).read_text(), flags=re.DOTALL
    )
    return len(_RIDDLES.findall(text))


def messages_of(text: str) -> Iterable[str]:
    """The strings of several words in a module, docstrings of modules and functions apart.

    The docstring of a command is its help text: `riddles` counts it.
    """
    tree = ast.parse(text)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(words)) if " " in words.strip():
                if id(node) not in docstrings:
                    yield words
            case _:
                pass


def prose_of(text: str) -> Iterable[str]:
    """The docstrings and the comments of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def wide_folders(paths: Iterable[Path]) -> Iterable[Path]:
    """Folders in which a reader searches."""
    loose: dict[Path, int] = {}
    for path in paths:
        if path.name != "__init__.py" and path.parent.name not in _LISTS:
            loose[path.parent] = loose.get(path.parent, 0) + 1
    return (folder for folder, count in loose.items() if count > _LOOSE_MAX)


def main() -> int:
    """Print the counts; 1 where one has grown."""
    grown = False
    for count in counts():
        grown |= count.found > count.today
        print(f"{count.what:<46} {count.found:>6}  at most {count.today:>6}  goal {count.goal:>6}")
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
