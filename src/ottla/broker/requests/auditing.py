"""The events that requests report to the audit log.

`ottla.broker.audit` implements the interface.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.network.connection import Connection
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

# The most denials of one request that are reported with their resources. Further denials are only
# counted, together for each client.
_NAMED_MAX = 50


class Need(NamedTuple):
    """An operation on a resource that a request needs, in the terms of ACLs."""

    operation: AclOperation
    kind: AclResource
    name: str


def cluster_need(operation: AclOperation) -> Need:
    """Return the need for the operation on the cluster."""
    return Need(operation, AclResource.CLUSTER, CLUSTER_NAME)


def topic_need(operation: AclOperation, name: str) -> Need:
    """Return the need for the operation on a topic."""
    return Need(operation, AclResource.TOPIC, name)


def group_need(operation: AclOperation, name: str) -> Need:
    """Return the need for the operation on a group."""
    return Need(operation, AclResource.GROUP, name)


class AdminChange(NamedTuple):
    """An administrative change that a client requested."""

    # The permissions that allow the change: any one suffices. The audit line names the last.
    needs: tuple[Need, ...]
    # The details of the change, without secrets.
    detail: Mapping[str, Any]
    # The error code if the change failed, else 0.
    code: int = 0
    # The rule that allows the change, if no ACL is needed.
    rule: str = ""


# The type of `request` is Any, because a `RequestContext` itself has a field for the audit log.
class Auditing(Protocol):
    """The interface of the audit log, if a broker has one. No method waits for the disk."""

    def denied(self, request: Any, need: Need, rule: str = "") -> None:
        """Report that a request, or a part of it, was denied by `rule`, or else by the ACLs."""
        ...

    def denied_more(self, request: Any, count: int) -> None:
        """Report how many more parts of a request were denied, without their names."""
        ...

    def changed(self, request: Any, change: AdminChange) -> None:
        """Report a change that succeeded or failed."""
        ...

    def watch(
        self, request: Any, changes_of: Callable[[Any], Iterable[AdminChange]], *, often: bool
    ) -> None:
        """Report the changes of a request once its response is known.

        If clients make such changes `often`, repetitions are only counted.
        """
        ...

    def holds(self, connection: Connection) -> bool:
        """Return whether a request must wait because its client fills the audit log too fast.

        In that case the connection is held, and offers the request again later.
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
    """Collects the denials found by one check; `end` reports those that were only counted.

    A request may name tens of thousands of resources, and reporting each denial costs more than
    checking it.
    """

    __slots__ = ("_count", "_request")

    def __init__(self, request: Any) -> None:
        self._request = request
        self._count = 0

    def add(self, need: Need) -> bool:
        """Add a denial for `need`; return whether it must be reported by name."""
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
