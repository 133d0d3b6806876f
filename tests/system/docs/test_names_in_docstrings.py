"""Dotted names in docstrings, and paths in the documents for developers, exist."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "ottla"
_QUOTED = re.compile(r"`([a-z_]\w*(?:\.\w+)+)(?:\(\))?`")
_PATH = re.compile(r"`((?:[\w-]+/)+(?:[\w.-]+\.(?:py|md|toml|c))?|[\w-]+\.(?:py|toml))`")
# The first parts of names that are ours: the packages of ottla.
PACKAGES = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
# Names with dots that are no names of Python: settings, features, a file, a table's property.
_OTHERS = {
    *BROKER_SETTINGS,
    *TOPIC_SETTINGS,
    *GROUP_SETTINGS,
    *("security.protocol", "transaction.version", "share.version", "client.properties"),
    *("ottla.digest", "controller.listener.names"),
}
# A file that only `make docs` writes, and the shorter name of one that has its folder before it.
_MADE = {"docs/developers/modules.md", "test_produce_shortcut.py"}


def docstrings() -> Iterator[tuple[str, str]]:
    """Each docstring with the name of its module."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) and (text := ast.get_docstring(node)):
                yield module, text


def resolves(name: str, module: str) -> bool:
    """Whether a name is a module or a thing of ours, as seen from `module` or its packages."""
    words = module.split(".")
    places = [".".join(words[:count]) for count in range(len(words), 0, -1)]
    return any(exists(f"{place}.{name}") for place in places) or exists(name)


def exists(name: str) -> bool:
    """Whether the whole name leads to something, by modules first and attributes after."""
    words = name.split(".")
    if not (SOURCE.parent / words[0]).exists():
        return False
    for count in range(len(words), 0, -1):
        path = SOURCE.parent.joinpath(*words[:count])
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
            return has(".".join(words[:count]), words[count:])
    return False


def has(module: str, words: list[str]) -> bool:
    """Whether a module has an attribute, which may be a field that only instances have."""
    if not words:
        return True
    thing: object = importlib.import_module(module)
    for word in words:
        fields = getattr(thing, "__annotations__", {})
        if word in fields or word in getattr(thing, "__slots__", ()):
            return True
        if not hasattr(thing, word):
            return False
        thing = getattr(thing, word)
    return True


def is_ours(name: str) -> bool:
    """Whether a name begins with a package of ours, and is no setting."""
    first = name.split(".", 1)[0]
    return first in {"ottla", *PACKAGES} and name not in _OTHERS


def test_dotted_names_in_docstrings_exist() -> None:
    """`broker.partition.Partition` leads to something, else a reader looks for it in vain."""
    missing = sorted(
        {
            f"{module}: {name}"
            for module, text in docstrings()
            for name in _QUOTED.findall(text)
            if is_ours(name) and not resolves(name, module)
        }
    )
    assert missing == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_in_documents_for_developers_exist(page: str) -> None:
    """Below the root, src/ottla, tests or docs."""
    named = _PATH.findall((ROOT / page).read_text())
    assert len(named) > 5
    places = (ROOT, SOURCE, ROOT / "tests", ROOT / "docs")
    missing = [
        name
        for name in named
        if name not in _MADE and not any((place / name).exists() for place in places)
    ]
    assert missing == []


def test_the_search_resolves_what_exists_and_nothing_else() -> None:
    """Modules, classes, methods and fields; from inside a package, too."""
    assert resolves("ottla.client.Producer.send", "ottla")
    assert resolves("client.Producer", "ottla.cli.command")
    assert not resolves("broker.partition.Roles", "ottla.broker")
    assert not resolves("storage.config.LogConfig", "ottla.storage")
