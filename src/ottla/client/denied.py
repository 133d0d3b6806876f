"""What a client says where an ACL is missing: which one, and the command that adds it."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.errors import ErrorCode

_KINDS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}


class Needs(NamedTuple):
    """An operation on a resource, in the words of `ottla acl add`."""

    operation: str
    kind: str  # topic, group, transactional-id or cluster.
    name: str = ""


def remedy_of(code: ErrorCode, needed: Iterable[Needs]) -> str | None:
    """How to allow what `code` says is denied; None where that is about something else."""
    kind = _KINDS.get(code)
    for one in needed:
        if one.kind == kind:
            resource = f"{one.kind}:{one.name}" if one.name else one.kind
            return (
                f"allow it: ottla acl add User:NAME {one.operation} {resource} (the broker's log "
                "has the principal)"
            )
    return None
