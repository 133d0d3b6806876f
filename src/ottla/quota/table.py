"""The quota that applies to a client: the most specific one set, of Kafka's eight levels."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.metadata.quota_entity import DEFAULT, QuotaEntity, plain_address
from ottla.quota.keys import Limits, QuotaKey

# The most look-ups that are cached: clients choose their client ids freely.
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
        # By address in the spelling of sockets; of several spellings the last one is used.
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
