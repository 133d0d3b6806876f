"""Explains whether a principal may do something in a cluster, and which rule decides."""

from ottla.client.admin import Admin
from ottla.security.acl import Pattern
from ottla.security.authorizer import Authorizer, Ruling
from ottla.security.names import AclOperation
from ottla.security.principal import Principal, parse_super_users
from ottla.security.rules import AclRules


async def explain_access(
    admin: Admin, principal: Principal, host: str, operation: AclOperation, resource: Pattern
) -> Ruling:
    """The decision that a broker makes by its present ACLs and settings. Raises OttlaError."""
    broker_id = (await admin.cluster.brokers())[0]
    settings = await admin.configs.describe("broker", str(broker_id))
    texts = {name: str(found.value) for name, found in settings.items()}
    authorizer = Authorizer(
        parse_super_users(texts.get("super.users", "")),
        allow_everyone_if_no_acl=texts.get("allow.everyone.if.no.acl.found") == "true",
        rules=AclRules(await admin.acls.find()),
    )
    return authorizer.explain(principal, host, operation, resource.type, resource.name)
