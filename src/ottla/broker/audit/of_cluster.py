"""Changes of ACLs, users, quotas, features and registrations."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.broker.audit.details import cluster, portions
from ottla.broker.requests.auditing import AdminChange
from ottla.security.acl import Acl, Pattern
from ottla.security.audit.line import bounded
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

_ALTER, _ALTER_CONFIGS = AclOperation.ALTER, AclOperation.ALTER_CONFIGS
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def create_acls(body: CreateAclsRequest, response: CreateAclsResponse) -> Iterator[AdminChange]:
    """A line for each ACL; the answers are in the order of the request."""
    for wanted, one in zip(body.creations, response.results, strict=False):
        detail = {"added": _acl_text(wanted, wanted.resource_pattern_type, wanted.permission_type)}
        yield AdminChange(cluster(_ALTER), detail, one.error_code)


def delete_acls(_body: DeleteAclsRequest, response: DeleteAclsResponse) -> Iterator[AdminChange]:
    """A line for each ACL that a filter matched, and for each filter that failed."""
    for found in response.filter_results:
        if found.error_code:
            yield AdminChange(cluster(_ALTER), {}, found.error_code)
        for one in found.matching_acls:
            detail = {"removed": _acl_text(one, one.pattern_type, one.permission_type)}
            yield AdminChange(cluster(_ALTER), detail, one.error_code)


# An ACL of a request or of a response: most of their fields have the same names.
def _acl_text(wanted: AclCreation | Any, kind: int, permission: int) -> str:
    try:
        pattern = Pattern(
            AclResource(wanted.resource_type), wanted.resource_name, PatternType(kind)
        )
        acl = Acl(
            pattern,
            wanted.principal,
            wanted.host,
            AclOperation(wanted.operation),
            Permission(permission),
        )
    except ValueError:
        return "with a number that stands for nothing known"
    return bounded(str(acl))


def alter_users(
    body: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse
) -> Iterator[AdminChange]:
    """A line for each credential, without anything of it."""
    codes = {one.user: one.error_code for one in response.results}
    for removed in body.deletions:
        yield _credential(removed.name, removed.mechanism, {"credential": "removed"}, codes)
    for wanted in body.upsertions:
        detail = {"credential": "set", "iterations": wanted.iterations}
        yield _credential(wanted.name, wanted.mechanism, detail, codes)


def _credential(
    user: str, mechanism: int, detail: Mapping[str, Any], codes: Mapping[str, int]
) -> AdminChange:
    names = {"user": bounded(user), "mechanism": _MECHANISMS.get(mechanism, str(mechanism))}
    return AdminChange(cluster(_ALTER), {**names, **detail}, codes.get(user, 0))


def alter_quotas(
    body: AlterClientQuotasRequest, response: AlterClientQuotasResponse
) -> Iterator[AdminChange]:
    """Lines of each entity; null is the default entity, and a null quota was removed."""
    if body.validate_only:
        return
    codes = {_entity(one.entity): one.error_code for one in response.entries}
    for wanted in body.entries:
        code = codes.get(_entity(wanted.entity), 0)
        # More than one portion of names is no entity, and was refused.
        entity = next(
            portions((bounded(one.entity_type), _name(one.entity_name)) for one in wanted.entity)
        )
        quotas = (
            (bounded(each.key), None if each.remove else str(each.value)) for each in wanted.ops
        )
        for portion in portions(quotas):
            yield AdminChange(cluster(_ALTER_CONFIGS), {"entity": entity, "quotas": portion}, code)


def _name(text: str | None) -> str | None:
    return None if text is None else bounded(text)


def _entity(parts: list[Any]) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in parts)


def update_features(
    body: UpdateFeaturesRequest, response: UpdateFeaturesResponse
) -> Iterator[AdminChange]:
    """A line for each feature."""
    if body.validate_only:
        return
    codes = {one.feature: one.error_code for one in response.results}
    for wanted in body.feature_updates:
        detail = {"feature": bounded(wanted.feature), "level": wanted.max_version_level}
        code = response.error_code or codes.get(wanted.feature, 0)
        yield AdminChange(cluster(_ALTER), detail, code)


def unregister_broker(
    body: UnregisterBrokerRequest, response: UnregisterBrokerResponse
) -> Iterator[AdminChange]:
    """One line."""
    yield AdminChange(cluster(_ALTER), {"unregistered": body.broker_id}, response.error_code)
