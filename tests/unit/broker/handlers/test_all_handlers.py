"""Each handler that is served has a test in this folder, and no test here opens a socket."""

import ast
import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.process.apis import served
from ottla.broker.requests.handler import Handler

from .cluster_world import play

FOLDER = Path(__file__).parent


def served_handlers() -> set[type[Handler]]:
    """The class of each API that a broker serves."""
    found = {each.api.key: each for each in _subclasses(Handler) if "api" in vars(each)}
    assert found.keys() == served().keys()
    return set(found.values())


def _subclasses(kind: type[Handler]) -> Iterator[type[Handler]]:
    """Those of the package of handlers. `dataclass(slots=True)` makes a second class of each."""
    for each in kind.__subclasses__():
        yield from _subclasses(each)
        if each.__module__.startswith("ottla.broker.handlers."):
            yield each


def called(tree: ast.AST) -> Iterator[str]:
    """The names that a file calls: classes are those whose objects it makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_every_handler_that_is_served_is_tested_in_this_folder() -> None:
    """A test makes the handler of its parts in memory; a new handler needs one as well."""
    made = {
        name for path in FOLDER.glob("test_*.py") for name in called(ast.parse(path.read_text()))
    }
    untested = sorted({each.__name__ for each in served_handlers()} - made)
    assert untested == [], f"write tests of these handlers in {FOLDER.name}/"


def _socket_call(name: str, *arguments: Any) -> None:
    with socket.socket() as one:
        getattr(one, name)(*arguments)


def _loop_call(name: str, *arguments: Any) -> None:
    async def main() -> None:
        await getattr(asyncio.get_running_loop(), name)(*arguments)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (_socket_call, ("bind", ("127.0.0.1", 0))),
        (_socket_call, ("connect", ("127.0.0.1", 9))),
        (_socket_call, ("connect_ex", ("127.0.0.1", 9))),
        (_socket_call, ("listen",)),
        (_loop_call, ("create_server", asyncio.Protocol, "127.0.0.1", 0)),
        (_loop_call, ("create_connection", asyncio.Protocol, "127.0.0.1", 9)),
    ],
)
def test_a_socket_that_a_test_opens_is_refused_and_noted(
    opened_sockets: list[str], call: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    """Code that catches the error does not hide it: the fixture looks at the notes at the end."""
    with pytest.raises(AssertionError, match="open no socket"):
        call(*arguments)
    assert opened_sockets == [arguments[0]]
    opened_sockets.clear()


def test_the_sockets_of_the_event_loop_itself_are_not_meant() -> None:
    """A loop begins and ends with a pair of its own."""

    async def scenario(_world: object) -> None:
        await asyncio.sleep(0)

    play(scenario)
