"""The part common to AlterConfigs and IncrementalAlterConfigs: resources, one by one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.setting import shortened


class Resource(Protocol):
    """A topic, broker or group, as a request names it."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


async def alter_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> list[tuple[R, ErrorCode, str | None]]:
    """`alter` resources independently of each other; the outcome of each, and why.

    One that is named twice is not altered, for only one of the two could hold.
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
