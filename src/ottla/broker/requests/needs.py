"""The permission checks from which the declaration of each API is built.

A guard checks one request before it is served. Functions passed to it select what to check in the
body or response: `resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id)`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.requests.access import GROUP_OPERATIONS, NOT_ASKED, DescribedGroup
from ottla.broker.requests.check import MESSAGES, RequestCheck
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

T = TypeVar("T")
# The body of a request, an item of one of its lists, the response, and an item of a list there.
Q = TypeVar("Q")
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
A = TypeVar("A")
G = TypeVar("G", bound=DescribedGroup)

_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."

Amend = Callable[[R], None]


class DeniedAnswer(NamedTuple):
    """The response to a request if no part of it is allowed."""

    response: Any


# Returns None if the whole request is allowed. If only some items are allowed, the handler serves
# those, and the returned `Amend` adds the denied items to its response. Raises OttlaError if the
# whole request is denied.
Guard = Callable[[RequestCheck[Q]], Amend[R] | DeniedAnswer | None]
# Returns the error of an item, or None if it is allowed.
ItemGuard = Callable[[RequestCheck[Any], I], ErrorCode | None]


def divided(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Split the items into allowed and denied ones, in their order.

    Each item is checked once. Items are not compared with each other, because there may be many.
    """
    allowed: list[T] = []
    denied: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else denied).append(item)
    return allowed, denied


# -- whole requests


def free(_check: RequestCheck[Any]) -> None:
    """Allow every client."""


def brokers_only(check: RequestCheck[Any]) -> None:
    """Deny every client. Other brokers, which know the cluster's secret, are not checked."""
    raise check.denial(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME)


def cluster(operation: AclOperation) -> Guard[Any, Any]:
    """Require the operation on the cluster for the whole request."""

    def guard(check: RequestCheck[Any]) -> None:
        check.require_cluster(operation)

    return guard


def resource(
    operation: AclOperation, kind: AclResource, name: Callable[[Q], str | None]
) -> Guard[Q, Any]:
    """Require the operation on the resource that the request names."""

    def guard(check: RequestCheck[Q]) -> None:
        check.require(operation, kind, name(check.body) or "")

    return guard


def all_of(*guards: Guard[Q, R]) -> Guard[Q, R]:
    """Require all guards in turn. Only the last one may deny single items."""
    *whole, last = guards

    def guard(check: RequestCheck[Q]) -> Amend[R] | DeniedAnswer | None:
        for each_guard in whole:
            found = each_guard(check)
            assert found is None, "a guard of whole requests"
        return last(check)

    return guard


def subscription(
    group_id: Callable[[Q], str], topics: Callable[[Q], Iterable[str] | None]
) -> Guard[Q, Any]:
    """Require READ on the group, and DESCRIBE on each topic that the member subscribes to."""

    def guard(check: RequestCheck[Q]) -> None:
        check.require(AclOperation.READ, AclResource.GROUP, group_id(check.body))
        for name in topics(check.body) or ():
            check.require(AclOperation.DESCRIBE, AclResource.TOPIC, name)

    return guard


# -- items


def each(
    items: Callable[[Q], list[I] | None],
    answers: Callable[[R], list[A]],
    needs: ItemGuard[I],
    refused: Callable[[I, ErrorCode], A] | None = None,
    *,
    error_of: Callable[[R], int] | None = None,
) -> Guard[Q, R]:
    """Check each of `items` of the body by itself; add errors of denied items to `answers`.

    `refused` creates the answer to a denied item, if the handler's `on_error` cannot. If `error_of`
    is given, the handler is called even if no item is left, since it may find an error of the whole
    request. `error_of` returns that error; the answer then has no items, as in Kafka.
    """

    def guard(check: RequestCheck[Q]) -> Amend[R] | DeniedAnswer | None:
        wanted = items(check.body)
        allowed: list[I] = []
        denied: dict[ErrorCode, list[I]] = {}
        for item in wanted or ():
            code = needs(check, item)
            (allowed if code is None else denied.setdefault(code, [])).append(item)
        if wanted is None or not denied:
            return None
        parts: list[A] = []
        for code, some in denied.items():
            if refused is None:
                wanted[:] = some
                parts += answers(check.on_error(check.body, code, MESSAGES[code], check.version))
            else:
                parts += [refused(item, code) for item in some]
        wanted[:] = allowed
        if not allowed and error_of is None:
            response: R = check.response()
            answers(response).extend(parts)
            return DeniedAnswer(response)

        def amend(response: R) -> None:
            if error_of is None or not error_of(response):
                answers(response).extend(parts)

        return amend

    return guard


def named(
    operation: AclOperation, kind: AclResource, name: Callable[[I], str]
) -> Callable[[RequestCheck[Any], I], ErrorCode | None]:
    """Require the operation on the resource that an item names."""
    return lambda check, item: check.code(operation, kind, name(item))


def topic_or_id(
    operation: AclOperation, topic: Callable[[I], tuple[UUID, str]]
) -> Callable[[RequestCheck[Any], I], ErrorCode | None]:
    """Require the operation on the topic that an item names, by id if it has one."""
    return lambda check, item: check.topic_code(operation, *topic(item))


# -- shown answers


def shown(
    answers: Callable[[R], list[A]],
    operation: AclOperation,
    kind: AclResource,
    name: Callable[[A], str],
) -> Guard[Any, R]:
    """Show only the `answers` on whose resource the client may do the operation."""

    def guard(check: RequestCheck[Any]) -> Amend[R]:
        def amend(response: R) -> None:
            listed = answers(response)
            listed[:] = [one for one in listed if check.sees(operation, kind, name(one))]

        return amend

    return guard


def described(
    group_ids: Callable[[Q], list[str]],
    groups: Callable[[R], list[G]],
    topics: Callable[[G], Iterable[str]] = lambda _group: (),
) -> Guard[Q, R]:
    """Require DESCRIBE on each group; fill in the client's authorized operations.

    `topics` returns the topics of the members in an answer. If the client may not DESCRIBE one of
    them, the group is answered with an error instead.
    """
    describe = AclOperation.DESCRIBE
    needs = each(group_ids, groups, named(describe, AclResource.GROUP, str))

    def guard(check: RequestCheck[Q]) -> Amend[R] | DeniedAnswer:
        refused = needs(check)
        if isinstance(refused, DeniedAnswer):
            return refused

        def amend(response: R) -> None:
            for group in groups(response):
                if not all(check.sees(describe, AclResource.TOPIC, name) for name in topics(group)):
                    group.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    group.error_message = _HIDDEN_TOPICS
                    group.members = []
                if group.authorized_operations != NOT_ASKED:
                    group.authorized_operations = check.access.operations(
                        GROUP_OPERATIONS, AclResource.GROUP, group.group_id
                    )
            if refused is not None:
                refused(response)

        return amend

    return guard
