"""Assignors, which split partitions among members: range, round robin, sticky, cooperative sticky.

`subscriptions` has the messages of a classic group's protocol.
"""

from ottla.base.errors import ErrorCode
from ottla.client.assignors.range import RangeAssignor, RoundRobinAssignor
from ottla.client.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.client.assignors.subscriptions import Assignor
from ottla.client.common.errors import ClientError

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "assignor_named",
]

_BY_NAME: dict[str, type[Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def assignor_named(name: str | Assignor) -> Assignor:
    """Return the assignor with that name; an assignor object is returned unchanged."""
    if not isinstance(name, str):
        return name
    if name not in _BY_NAME:
        raise ClientError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"no assignor {name!r}; use one of {', '.join(_BY_NAME)}",
        )
    return _BY_NAME[name]()
