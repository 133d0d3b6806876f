"""The table of all configured quotas, and the keys that an entity can have."""

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.metadata.quota_entity import DEFAULT, QuotaEntity, plain_address


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
    """Return the key with that name.

    Raises OttlaError(INVALID_REQUEST) if the entity cannot have a quota of that name.
    """
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
    """Return a limit as text for the store, in Kafka's form."""
    return str(round(value)) if key in _WHOLE else repr(value)


# How many look-ups are cached at most: clients can send any number of client ids.
_REMEMBERED_MAX = 10_000


class Held(NamedTuple):
    """The limit that applies to a client, and the entity whose clients share it.

    A default limit is not shared: each user or client id gets it separately.
    """

    limit: float
    sharing: QuotaEntity


class QuotaTable:
    """All quotas that are set. Immutable apart from its cache; a change makes a new table."""

    def __init__(self, quotas: Mapping[QuotaEntity, Limits]) -> None:
        self.quotas = {entity: limits for entity, limits in quotas.items() if limits}
        self.limits_clients = any(entity.ip is None for entity in self.quotas)
        self.limits_addresses = any(entity.ip is not None for entity in self.quotas)
        # By address, in the spelling of sockets. If quotas spell one address differently, the last
        # one applies.
        self._of_address = {
            plain_address(entity.ip): limits[QuotaKey.CONNECTION]
            for entity, limits in self.quotas.items()
            if isinstance(entity.ip, str) and QuotaKey.CONNECTION in limits
        }
        self._known: dict[tuple[QuotaKey, str, str], Held | None] = {}

    def with_limits(self, entity: QuotaEntity, limits: Limits) -> "QuotaTable":
        """A table with the quotas of one entity replaced; empty `limits` remove the entity."""
        return QuotaTable({**self.quotas, entity: limits})

    # Hot: once per request of a client, where quotas are set.
    def held(self, key: QuotaKey, user: str, client_id: str) -> Held | None:
        """The limit of `key` for a client; None for no limit."""
        asked = (key, user, client_id)
        if asked in self._known:
            return self._known[asked]
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        found = self._known[asked] = self._find(key, user, client_id)
        return found

    def held_address(self, address: str) -> Held | None:
        """The limit of `connection_creation_rate` for an address; None for no limit."""
        limit = self._of_address.get(address)
        if limit is None:
            limit = self.quotas.get(QuotaEntity(ip=DEFAULT), {}).get(QuotaKey.CONNECTION)
        return None if limit is None else Held(limit, QuotaEntity(ip=address))

    def _find(self, key: QuotaKey, user: str, client_id: str) -> Held | None:
        both = QuotaEntity(user, client_id)
        levels = (
            (both, both),
            (QuotaEntity(user, DEFAULT), both),
            (QuotaEntity(user), QuotaEntity(user)),
            (QuotaEntity(DEFAULT, client_id), both),
            (QuotaEntity(DEFAULT, DEFAULT), both),
            (QuotaEntity(DEFAULT), QuotaEntity(user)),
            (QuotaEntity(client_id=client_id), QuotaEntity(client_id=client_id)),
            (QuotaEntity(client_id=DEFAULT), QuotaEntity(client_id=client_id)),
        )
        for entity, sharing in levels:
            limits = self.quotas.get(entity)
            if limits is not None and key in limits:
                return Held(limits[key], sharing)
        return None
