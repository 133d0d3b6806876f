"""What requests report to the audit log; `ottla.broker.audit` implements it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.network.connection import Connection
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

# Denials of one request that are reported by name: more kinds of one client the audit log counts
# together.
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
    """One administrative change that a client requested."""

    # What allows it: the first one, or the next. The line names the last.
    needs: tuple[Need, ...]
    # What was changed. Never a secret.
    detail: Mapping[str, Any]
    # Why it failed; 0 where it did not.
    code: int = 0
    # What allows it where no ACL does.
    rule: str = ""


# A `RequestContext` is Any here: it has the audit log as a field.
class Auditing(Protocol):
    """The audit log of a broker that has one. No method waits for the disk."""

    def denied(self, request: Any, need: Need, rule: str = "") -> None:
        """A request, or a part of one, was denied; by `rule`, or else by the authorizer."""
        ...

    def denied_more(self, request: Any, count: int) -> None:
        """So many more parts of a request were denied; they are counted without their names."""
        ...

    def changed(self, request: Any, change: AdminChange) -> None:
        """A change was made, or failed."""
        ...

    def watch(
        self, request: Any, changes_of: Callable[[Any], Iterable[AdminChange]], *, often: bool
    ) -> None:
        """Report the changes of a request when there is a response to find them by.

        `often`: repetitions are counted.
        """
        ...

    def holds(self, connection: Connection) -> bool:
        """Whether a request waits, because its client's changes are too many lines of the log.

        Then the connection is held, and offers the request again.
        """
        ...

    def logged_in(self, connection: Connection, listener: str, mechanism: str) -> None:
        """A client has logged in."""
        ...

    def login_failed(self, connection: Connection, listener: str, cause: str, user: str) -> None:
        """A client could not log in. `cause` has no secret.

        `user` is the one that the login named, where there is such a user; else empty.
        """
        ...


class Denials:
    """What one check of a request denied: `end` reports what was counted and not named.

    A request may name tens of thousands of resources, and a report of each costs more than the
    check.
    """

    __slots__ = ("_count", "_request")

    def __init__(self, request: Any) -> None:
        self._request = request
        self._count = 0

    def add(self, need: Need) -> bool:
        """Note that `need` is not met. Whether it is one of those that are reported by name."""
        self._count += 1
        if self._count > _NAMED_MAX:
            return False
        if self._request.audit is not None:
            self._request.audit.denied(self._request, need)
        return True

    def end(self) -> int:
        """Report how many others there were, and return the number."""
        more = max(0, self._count - _NAMED_MAX)
        self._count = 0
        if more and self._request.audit is not None:
            self._request.audit.denied_more(self._request, more)
        return more
