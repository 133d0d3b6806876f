"""Finds ACLs that can be stored but match no request; a DENY of this kind protects nothing.

Pure.
"""

import re

from ottla.security.acl import Acl
from ottla.security.names import WILDCARD, AclOperation, AclResource, PatternType
from ottla.security.principal import USER, parse_principal
from ottla.security.rules import network_of

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_QUOTES = ('"', "'")
_CONFIGS = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
# The operations that requests need, in the view of Kafka's kafka-acls.
_OPERATIONS: dict[AclResource, set[AclOperation]] = {
    AclResource.TOPIC: {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    },
    AclResource.GROUP: {
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    },
    AclResource.CLUSTER: {
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.IDEMPOTENT_WRITE,
        *_CONFIGS,
    },
    AclResource.TRANSACTIONAL_ID: {
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.TWO_PHASE_COMMIT,
    },
    AclResource.DELEGATION_TOKEN: {AclOperation.DESCRIBE},
    AclResource.USER: {AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS},
}


def acl_doubts(acl: Acl) -> list[str]:
    """Explain why no request may ever match the ACL; each sentence has its remedy."""
    return [*_of_principal(acl.principal), *_of_host(acl.host), *_of_resource(acl)]


def _of_principal(text: str) -> list[str]:
    kind, name = parse_principal(text)
    if kind != USER:
        return [f"the type of clients is {USER}, not {kind}: write {USER}:{name}"]
    if not name:
        return [f"{text} has no name"]
    if name != name.strip() or name.startswith(_QUOTES):
        return [f"blanks and quotes are part of the name in {text!r}: leave them out"]
    if name != WILDCARD and name.endswith(WILDCARD):
        return [f"{text} is the user of that name: only {USER}:{WILDCARD} is for more than one"]
    if re.search(r"[;,]\s*User:", name):
        return [f"{text} is one principal: add one ACL for each"]
    return []


def _of_host(text: str) -> list[str]:
    # A single address is a network of one address.
    if text == WILDCARD or network_of(text) is not None:
        return []
    return [f"the host {text!r} is no address and no network: names match none, as in Kafka"]


def _of_resource(acl: Acl) -> list[str]:
    kind, name, form = acl.pattern
    asked = _OPERATIONS[kind]
    if acl.operation is not AclOperation.ALL and acl.operation not in asked:
        words = ", ".join(sorted(each.name.lower().replace("_", "-") for each in asked))
        what = kind.name.lower().replace("_", "-")
        return [f"no request asks for this operation on a {what}, only for {words}"]
    is_all = name == WILDCARD and form is PatternType.LITERAL
    if kind is AclResource.TOPIC and not is_all and not _TOPIC.fullmatch(name):
        return [
            f"no topic can have the name {name!r}; for all whose names begin alike, write the"
            " beginning without * and --prefixed"
        ]
    return []
