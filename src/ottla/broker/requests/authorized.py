"""The authorized operations in answers; without an authorizer, all that exist (KIP-430).

A set of operations is a 32-bit field in which bit N stands for operation number N.
"""

from typing import Any, Protocol, TypeVar

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12

_Group = TypeVar("_Group", bound="DescribedGroup")

# The value of the response field if the request did not ask for it.
NOT_ASKED = -(2**31)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    _READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(
    _CREATE,
    _ALTER,
    _DESCRIBE,
    _CLUSTER_ACTION,
    _DESCRIBE_CONFIGS,
    _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
)


class DescribedGroup(Protocol):
    """A group in the answer of any of the three APIs that describe groups."""

    group_id: str
    error_code: int
    error_message: str | None
    members: list[Any]
    authorized_operations: int


def with_operations(groups: list[_Group], *, asked: bool) -> list[_Group]:
    """Add the authorized operations if the request asked for them.

    Groups with an error get none.
    """
    if asked:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return groups
