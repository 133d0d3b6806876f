"""The store's rules for all implementations: the effect of each operation on the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ottla.coordination.interface.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
    SessionExpired,
    Set,
    check_path,
    parent_of,
)


class Nodes(Protocol):
    """A mutable set of nodes that undoes all changes if an operation raises."""

    def version(self, path: str) -> int | None:
        """The version of a node; None if there is none."""
        ...

    def insert(self, path: str, data: bytes, owner: int) -> None:
        """Add a node at version 0. `owner` is its session's id, 0 for persistent ones."""
        ...

    def update(self, path: str, data: bytes, version: int) -> None: ...

    def remove(self, path: str) -> None: ...

    def has_children(self, path: str) -> bool: ...

    def is_ephemeral(self, path: str) -> bool: ...

    def is_alive(self, session_id: int) -> bool:
        """Whether a session is still open."""
        ...

    def next_sequence(self, path: str) -> int:
        """Return how many sequential children `path` was given before, and count one more."""
        ...


@dataclass(slots=True)
class ChangedPaths:
    """The paths that a committed multi changed, in order, for the watches."""

    data: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)

    def note(self, path: str, *, listed: bool) -> None:
        """Note that `path` changed; with `listed`, its parent's list of children did, too."""
        self.data[path] = None
        if listed:
            self.children[parent_of(path)] = None


def apply(nodes: Nodes, operations: Sequence[Operation]) -> tuple[list[Result], ChangedPaths]:
    """Apply `operations` to `nodes` in order. Raises the StoreError of the first that fails."""
    changes = ChangedPaths()
    results: list[Result] = []
    for operation in operations:
        check_path(operation.path)
        match operation:
            case Create():
                results.append(_create(nodes, operation, changes))
            case Set():
                version = _expect(nodes, operation.path, operation.version) + 1
                nodes.update(operation.path, operation.data, version)
                changes.note(operation.path, listed=False)
                results.append(version)
            case Delete():
                _expect(nodes, operation.path, operation.version)
                if nodes.has_children(operation.path):
                    raise NotEmpty(operation.path)
                nodes.remove(operation.path)
                changes.note(operation.path, listed=True)
                results.append(None)
            case Check():
                _expect(nodes, operation.path, operation.version)
                results.append(None)
    return results, changes


def _create(nodes: Nodes, operation: Create, changes: ChangedPaths) -> str:
    parent = parent_of(operation.path)
    if parent != "/" and nodes.version(parent) is None:
        raise NoNode(parent)
    assert not nodes.is_ephemeral(parent), f"{parent} is ephemeral and can have no children"
    session = operation.session
    if session is not None and (session.expired or not nodes.is_alive(session.id)):
        raise SessionExpired(session.id)
    path = operation.path
    if operation.sequential:
        path = f"{path}{nodes.next_sequence(parent):010d}"
    elif nodes.version(path) is not None:
        raise NodeExists(path)
    nodes.insert(path, operation.data, session.id if session is not None else 0)
    changes.note(path, listed=True)
    return path


def _expect(nodes: Nodes, path: str, version: int) -> int:
    found = nodes.version(path)
    if found is None:
        raise NoNode(path)
    if version not in (ANY_VERSION, found):
        raise BadVersion(path, version, found)
    return found
