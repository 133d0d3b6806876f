"""Error messages for denied access: the missing ACL, and the client's login."""

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
# Errors of a login, and errors decided by ACLs.
_OF_ACCESS = frozenset({*_KINDS, ErrorCode.SASL_AUTHENTICATION_FAILED})


class LoginName(NamedTuple):
    """The identity that brokers see, for messages; contains no secret."""

    words: str = "does not log in"
    principal: str | None = None  # None if the client does not know its principal.
    file: str | None = None  # The file with its settings; None if the program passed them.


def with_login(code: ErrorCode, message: str, login: LoginName, host: str) -> str | None:
    """Return the message of a refusal with the login added; None for other errors."""
    if code not in _OF_ACCESS:
        return None
    if login.principal is not None:
        message = message.replace(_NAME, shlex.quote(login.principal)).replace(_IN_THE_LOG, "")
    by = "the settings of its program" if login.file is None else f"the settings in {login.file}"
    return f"{message}. On {host} this client {login.words}, by {by}"


def remedy_of(code: ErrorCode, needed: Iterable[Needs]) -> str | None:
    """Return how to allow what `code` denies; None for other errors."""
    kind = _KINDS.get(code)
    for one in needed:
        if one.kind == kind:
            resource = f"{one.kind}:{one.name}" if one.name else one.kind
            return f"allow it: ottla acl add {_NAME} {one.operation} {resource}{_IN_THE_LOG}"
    return None
