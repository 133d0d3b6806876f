"""The quota keys, by Kafka's names, and their valid limits."""

from collections.abc import Mapping
from enum import Enum
from math import isfinite

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata.quota_entity import QuotaEntity


class QuotaKey(Enum):
    """The quantity that a quota limits."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    # Time of the broker's single request thread, in percent.
    REQUEST = "request_percentage"
    # Partitions created and deleted per second.
    MUTATION = "controller_mutation_rate"
    # New connections per second, of an address.
    CONNECTION = "connection_creation_rate"


_OF_CLIENTS = (QuotaKey.PRODUCE, QuotaKey.FETCH, QuotaKey.REQUEST, QuotaKey.MUTATION)
# Keys whose limits are whole numbers, and their largest limits.
_WHOLE = {
    QuotaKey.PRODUCE: 2**63 - 1,
    QuotaKey.FETCH: 2**63 - 1,
    QuotaKey.CONNECTION: 2**31 - 1,
}
_EPSILON = 1e-6

Limits = Mapping[QuotaKey, float]


def keys_of(entity: QuotaEntity) -> tuple[QuotaKey, ...]:
    """The keys that an entity can have."""
    return (QuotaKey.CONNECTION,) if entity.ip is not None else _OF_CLIENTS


def known_key(entity: QuotaEntity, name: str) -> QuotaKey:
    """The key by name. Raises OttlaError(INVALID_REQUEST) if the entity cannot have it."""
    keys = keys_of(entity)
    for key in keys:
        if key.value == name:
            return key
    kind = "an ip" if entity.ip is not None else "a user or client-id"
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"Invalid configuration key {name[:100]}; the quotas of {kind} are "
        f"{', '.join(key.value for key in keys)}",
    )


def check_limit(key: QuotaKey, value: float) -> None:
    """Raise OttlaError(INVALID_REQUEST) for an invalid limit."""
    if not isfinite(value) or value <= 0:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"Quota {key.value} must be greater than 0, not {value:g}; remove it for no limit",
        )
    most = _WHOLE.get(key)
    if most is None:
        return
    if abs(value - round(value)) > _EPSILON:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{key.value} cannot be a fractional value, as {value:g} is"
        )
    if round(value) < 1:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"Quota {key.value} must be at least 1, not {value:g}; remove it for no limit",
        )
    if value > most:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{value:g} is too large for {key.value}, at most {most}"
        )


def limit_text(key: QuotaKey, value: float) -> str:
    """A limit as text in the store, in Kafka's form."""
    return str(round(value)) if key in _WHOLE else repr(value)
