"""The kinds of checks that requests have in common."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.broker.access.check import MESSAGES, RequestCheck
from ottla.security.names import AclOperation, AclResource

T = TypeVar("T")

# Bodies and responses belong to their API, hence Any.
Amend = Callable[[Any], None]


class DeniedAnswer(NamedTuple):
    """Nothing of the request is allowed: its response."""

    response: Any


# None: all of the request is allowed. An `Amend` completes the handler's response, which knows
# only of what was left in the body. Raises OttlaError where the whole request is denied.
Guard = Callable[[RequestCheck], Amend | DeniedAnswer | None]
# The error of an item; None if it is allowed.
Needs = Callable[[RequestCheck, Any], ErrorCode | None]
# The part of a response that reports the error of an item.
Refuse = Callable[[Any, ErrorCode], Any]


def divided(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """The items that are allowed, and those that are denied, in their order.

    Each is asked about once, and none is compared with another: a request may have many.
    """
    allowed: list[T] = []
    denied: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else denied).append(item)
    return allowed, denied


def free(_check: RequestCheck) -> None:
    """Every client may."""


def cluster(operation: AclOperation) -> Guard:
    """The whole request needs the operation on the cluster."""

    def guard(check: RequestCheck) -> None:
        check.require_cluster(operation)

    return guard


def named(operation: AclOperation, kind: AclResource, field: str) -> Guard:
    """The whole request needs the operation on the resource that `field` of the body names."""

    def guard(check: RequestCheck) -> None:
        check.require(operation, kind, getattr(check.body, field) or "")

    return guard


def both(first: Guard, second: Guard) -> Guard:
    """The whole request needs what `first` checks; then `second` decides."""

    def guard(check: RequestCheck) -> Amend | DeniedAnswer | None:
        found = first(check)
        assert found is None, "a guard of whole requests"
        return second(check)

    return guard


def each(
    items: str,
    answers: str,
    needs: Needs,
    refuse: Refuse | None = None,
    *,
    always_served: bool = False,
) -> Guard:
    """Each of `items` of the body needs its own; denied ones are answered in `answers`.

    `refuse` makes the answer to a denied item where the handler's `on_error` answers no items.
    `always_served`: the handler answers even if nothing is left, for it may find an error of the
    whole request; such an answer has no items, as in Kafka.
    """

    def guard(check: RequestCheck) -> Amend | DeniedAnswer | None:
        allowed: list[Any] = []
        denied: dict[ErrorCode, list[Any]] = {}
        for item in getattr(check.body, items) or ():
            code = needs(check, item)
            (allowed if code is None else denied.setdefault(code, [])).append(item)
        if not denied:
            return None
        parts: list[Any] = []
        for code, some in denied.items():
            if refuse is None:
                setattr(check.body, items, some)
                refused = check.on_error(check.body, code, MESSAGES[code], check.version)
                parts += getattr(refused, answers)
            else:
                parts += [refuse(item, code) for item in some]
        setattr(check.body, items, allowed)
        if not allowed and not always_served:
            return DeniedAnswer(check.response(**{answers: parts}))

        def amend(response: Any) -> None:
            if not (always_served and response.error_code):
                setattr(response, answers, [*getattr(response, answers), *parts])

        return amend

    return guard


def topic(operation: AclOperation, field: str = "name") -> Needs:
    """An item needs the operation on the topic that its `field` names."""
    return lambda check, item: check.code(operation, AclResource.TOPIC, getattr(item, field))


def topic_or_id(operation: AclOperation) -> Needs:
    """An item needs the operation on the topic that it names, by id where it has one."""
    return lambda check, item: check.topic_code(operation, item)


def text(operation: AclOperation, kind: AclResource) -> Needs:
    """An item is the name of a resource that it needs the operation on."""
    return lambda check, item: check.code(operation, kind, item)


def shown(answers: str, field: str, operation: AclOperation, kind: AclResource) -> Guard:
    """Of the listed `answers`, the client sees those whose resource it may do the operation on."""

    def guard(check: RequestCheck) -> Amend:
        def amend(response: Any) -> None:
            listed = getattr(response, answers)
            setattr(
                response,
                answers,
                [one for one in listed if check.sees(operation, kind, getattr(one, field))],
            )

        return amend

    return guard
