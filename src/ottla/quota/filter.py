"""The filter of DescribeClientQuotas: which entities it matches (KIP-546)."""

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata.quota_entity import DEFAULT, Name, QuotaEntity

_KINDS = ("user", "client-id", "ip")


class Match(IntEnum):
    """The match types of a filter component: a name, the default entity, or any entity."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class Component(NamedTuple):
    """One condition of a filter: the entity has a part `kind`, named `name`; None matches any."""

    kind: str
    name: Name | None


def parse_component(kind: str, match_type: int, match: str | None) -> Component:
    """Convert a component of the request.

    Raises OttlaError: INVALID_REQUEST if its match type and name do not fit together,
    UNSUPPORTED_VERSION if the entity type is unknown.
    """
    if not kind:
        raise OttlaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if kind not in _KINDS:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unsupported entity type {kind[:100]}; there are {', '.join(_KINDS)}",
        )
    if match_type not in tuple(Match):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected match type {match_type}; there are 0, 1 and 2"
        )
    if match_type == Match.EXACT:
        if match is None:
            raise OttlaError(ErrorCode.INVALID_REQUEST, f"Request lacks the {kind} to match")
        return Component(kind, match)
    if match is not None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"Request names the {kind} {match[:100]}, but its match type is not exact",
        )
    return Component(kind, DEFAULT if match_type == Match.DEFAULT else None)


def check_filter(components: Sequence[Component]) -> None:
    """Raise OttlaError(INVALID_REQUEST) for conditions that cannot be combined."""
    kinds = [component.kind for component in components]
    twice = next((kind for kind, count in Counter(kinds).items() if count > 1), None)
    if twice is not None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"Entity type {twice} cannot appear more than once"
        )
    if "ip" in kinds and len(kinds) > 1:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter: an ip cannot be combined with a user or client-id",
        )


def is_meant(entity: QuotaEntity, components: Sequence[Component], *, strict: bool) -> bool:
    """Whether an entity matches all conditions; with `strict` it must have no other parts."""
    names = {"user": entity.user, "client-id": entity.client_id, "ip": entity.ip}
    has = {kind: name for kind, name in names.items() if name is not None}
    for kind, wanted in components:
        if kind not in has or (wanted is not None and has[kind] != wanted):
            return False
    return not strict or len(has) == len(components)
