"""The events that requests report to the audit log.

`ottla.broker.audit` implements the interface.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.network.connection import Connection
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

# Denials of one request that are reported by name; the audit log counts the further ones of a
# client together.
_NAMED_MAX = 50


class Need(NamedTuple):
    """An operation on a resource, as ACLs know them."""

    operation: AclOperation
    kind: AclResource
    name: str


def cluster_need(operation: AclOperation) -> Need:
    """The operation on the cluster."""
    return Need(operation, AclResource.CLUSTER, CLUSTER_NAME)


def topic_need(operation: AclOperation, name: str) -> Need:
    """The operation on a topic."""
    return Need(operation, AclResource.TOPIC, name)


def group_need(operation: AclOperation, name: str) -> Need:
    """The operation on a group."""
    return Need(operation, AclResource.GROUP, name)


class AdminChange(NamedTuple):
    """An administrative change that a client requested."""

    # The permissions that allow it: any one of them suffices. The audit line names the last.
    needs: tuple[Need, ...]
    # The details of the change. Never contains a secret.
    detail: Mapping[str, Any]
    # The error if it failed, else 0.
    code: int = 0
    # The rule that allows it, if no ACL does.
    rule: str = ""


# A `RequestContext` is Any here, because it has the audit log as a field.
class Auditing(Protocol):
    """The audit log of a broker that has one. No method waits for the disk."""

    def denied(self, request: Any, need: Need, rule: str = "") -> None:
        """Report that a request, or a part of it, was denied by `rule`, else by the authorizer."""
        ...

    def denied_more(self, request: Any, count: int) -> None:
        """Report how many more parts of a request were denied.

        They are counted without their names.
        """
        ...

    def changed(self, request: Any, change: AdminChange) -> None:
        """Report a change that was made, or that failed."""
        ...

    def watch(
        self, request: Any, changes_of: Callable[[Any], Iterable[AdminChange]], *, often: bool
    ) -> None:
        """Report the changes of a request once its response is known.

        `often`: repetitions are only counted.
        """
        ...

    def holds(self, connection: Connection) -> bool:
        """Whether a request must wait because its client's changes write too many audit lines.

        If so, the connection is held and offers the request again later.
        """
        ...

    def logged_in(self, connection: Connection, listener: str, mechanism: str) -> None:
        """Report that a client has logged in."""
        ...

    def login_failed(self, connection: Connection, listener: str, cause: str, user: str) -> None:
        """Report that a client failed to log in. `cause` contains no secret.

        `user` is the user that the client claimed, if that user exists; else empty.
        """
        ...


class Denials:
    """The denials of one check of a request; `end` reports those that were only counted.

    A request may name tens of thousands of resources, and reporting each costs more than checking
    it.
    """

    __slots__ = ("_count", "_request")

    def __init__(self, request: Any) -> None:
        self._request = request
        self._count = 0

    def add(self, need: Need) -> bool:
        """Note that `need` is not met; return whether it is to be reported by name."""
        self._count += 1
        if self._count > _NAMED_MAX:
            return False
        if self._request.audit is not None:
            self._request.audit.denied(self._request, need)
        return True

    def end(self) -> int:
        """Report how many denials were not reported by name, and return their number."""
        more = max(0, self._count - _NAMED_MAX)
        self._count = 0
        if more and self._request.audit is not None:
            self._request.audit.denied_more(self._request, more)
        return more
