"""Functions shared by the APIs for settings: resources, their permissions, and altering them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.broker.configs.configs import ResourceType
from ottla.broker.requests.auditing import Need, cluster_need, group_need, topic_need
from ottla.broker.requests.check import RequestCheck
from ottla.security.names import AclOperation


class Resource(Protocol):
    """A topic, broker or group, as named by a request."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


def settings_need(operation: AclOperation, resource: Resource) -> Need:
    """Return the permission for settings: on the topic or group, or else on the cluster."""
    if resource.resource_type == ResourceType.TOPIC:
        return topic_need(operation, resource.resource_name)
    if resource.resource_type == ResourceType.GROUP:
        return group_need(operation, resource.resource_name)
    return cluster_need(operation)


def of_settings(
    operation: AclOperation,
) -> Callable[[RequestCheck[Any], Resource], ErrorCode | None]:
    """Return a check of the permission in `settings_need` for each resource."""
    return lambda check, resource: check.code(*settings_need(operation, resource))


async def alter_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> list[tuple[R, ErrorCode, str | None]]:
    """Alter resources independently of each other; return an outcome for each.

    A resource that is listed twice is not altered, because only one change could apply.
    """
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    outcomes: list[tuple[R, ErrorCode, str | None]] = []
    for resource in resources:
        code, message = ErrorCode.NONE, None
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    "Each resource must appear at most once in a request: "
                    f"{shortened(resource.resource_name)} is there twice",
                )
            await alter(resource)
        except OttlaError as error:
            code, message = error.code, error.message
        outcomes.append((resource, code, message))
    return outcomes
