"""Explains what a client may do, and which quotas apply to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin import Admin
from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.quota.table import QuotaKey, QuotaTable, keys_of
from ottla.security.acl import ResourcePattern
from ottla.security.authorizer import Authorizer, Ruling
from ottla.security.names import AclOperation
from ottla.security.principal import Principal, parse_super_users
from ottla.security.rules import AclRules


async def explain_access(
    admin: Admin,
    principal: Principal,
    host: str,
    operation: AclOperation,
    resource: ResourcePattern,
) -> Ruling:
    """Return the decision of a broker by its present ACLs and settings. Raises OttlaError."""
    broker_id = (await admin.cluster.brokers())[0]
    settings = await admin.configs.describe("broker", str(broker_id))
    texts = {name: str(found.value) for name, found in settings.items()}
    authorizer = Authorizer(
        parse_super_users(texts.get("super.users", "")),
        allow_everyone_if_no_acl=texts.get("allow.everyone.if.no.acl.found") == "true",
        rules=AclRules(await admin.acls.find()),
    )
    return authorizer.explain(principal, host, operation, resource.resource_type, resource.name)


@dataclass(frozen=True, slots=True)
class HeldLimit:
    """A limit that applies to a client, and the entity for which it is set."""

    key: QuotaKey
    limit: float
    set_for: QuotaEntity


def limits_of(
    entity: QuotaEntity, found: Mapping[QuotaEntity, Mapping[str, float]]
) -> list[HeldLimit]:
    """Return the limits that apply to `entity`, given all quotas that are set.

    Of several limits with the same key, the one of the most specific entity applies. For a
    default entity (`--default-user`), these are the limits that are set for it.
    """
    table = QuotaTable({one: _known(one, limits) for one, limits in found.items()})
    held: list[HeldLimit] = []
    for key in keys_of(entity):
        for level in _levels(entity):
            limit = table.quotas.get(level, {}).get(key)
            if limit is not None:
                held.append(HeldLimit(key, limit, level))
                break
    return held


def _levels(entity: QuotaEntity) -> Iterable[QuotaEntity]:
    """Yield the entities whose quotas apply to `entity`, the most specific first."""
    if entity.ip is not None:
        return dict.fromkeys((entity, QuotaEntity(ip=DEFAULT)))
    users = dict.fromkeys((entity.user, DEFAULT)) if entity.user is not None else {}
    clients = dict.fromkeys((entity.client_id, DEFAULT)) if entity.client_id is not None else {}
    levels = []
    for user in users:
        levels += [QuotaEntity(user, client) for client in clients]
        levels.append(QuotaEntity(user))
    return [*levels, *(QuotaEntity(client_id=client) for client in clients)]


def _known(entity: QuotaEntity, limits: Mapping[str, float]) -> dict[QuotaKey, float]:
    return {key: limits[key.value] for key in keys_of(entity) if key.value in limits}
