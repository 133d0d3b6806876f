"""What a client says where it is refused: which ACL is missing, and how it has logged in."""

import shlex
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


_NAME = "User:NAME"
_IN_THE_LOG = " (the broker's log has the principal)"
# Of a login, and those that ACLs decide about.
_OF_ACCESS = frozenset({*_KINDS, ErrorCode.SASL_AUTHENTICATION_FAILED})


class LoginName(NamedTuple):
    """Who a client is to brokers, for messages; no secret is in it."""

    words: str = "does not log in"
    principal: str | None = None  # Where the client knows what brokers make of its login.
    file: str | None = None  # Where its settings stand; None: a program gave them.


def with_login(code: ErrorCode, message: str, login: LoginName, host: str) -> str | None:
    """The message of a refusal, with who was refused; None where it is about something else."""
    if code not in _OF_ACCESS:
        return None
    if login.principal is not None:
        message = message.replace(_NAME, shlex.quote(login.principal)).replace(_IN_THE_LOG, "")
    by = "the settings of its program" if login.file is None else f"the settings in {login.file}"
    return f"{message}. On {host} this client {login.words}, by {by}"


def remedy_of(code: ErrorCode, needed: Iterable[Needs]) -> str | None:
    """How to allow what `code` says is denied; None where that is about something else."""
    kind = _KINDS.get(code)
    for one in needed:
        if one.kind == kind:
            resource = f"{one.kind}:{one.name}" if one.name else one.kind
            return f"allow it: ottla acl add {_NAME} {one.operation} {resource}{_IN_THE_LOG}"
    return None
