"""Converts our operations to one ZooKeeper transaction, and its answers to our results."""

from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from ottla.coordination.interface.store import Check, Create, Delete, Operation, Result, Set


def transaction(
    client: KazooClient,
    operations: Sequence[Operation],
    locate: Callable[[str], str],
    acl: Callable[[str], Any],
) -> Any:
    """Kazoo's transaction, not yet sent.

    `locate` gives the ensemble's path for one of ours, `acl` the ACL of a new node.
    """
    made = client.transaction()
    for operation in operations:
        place = locate(operation.path)
        match operation:
            case Create():
                made.create(
                    place,
                    operation.data,
                    acl=acl(operation.path),
                    ephemeral=operation.session is not None,
                    sequence=operation.sequential,
                )
            case Set():
                made.set_data(place, operation.data, operation.version)
            case Delete():
                made.delete(place, operation.version)
            case Check():
                made.check(place, operation.version)
    return made


def first_refusal(
    operations: Sequence[Operation], answers: Sequence[Any]
) -> tuple[Operation, Exception] | None:
    """The refused operation and its error; the others' errors only say that one failed."""
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(answer, Exception) and not isinstance(
            answer, RolledBackError | RuntimeInconsistency
        ):
            return operation, answer
    return None


def result_of(operation: Operation, answer: Any, chroot: str) -> Result:
    """The result in `Store.multi` of one operation."""
    match operation:
        case Create():
            return str(answer)[len(chroot) :]
        case Set():
            return int(answer.version)
    return None
