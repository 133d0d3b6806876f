"""How ACLs and delegation tokens are stored.

An unreadable ACL must not open access to its resources: its pattern then denies every user. The
secrets of tokens are not stored.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from ottla.base.errors import OttlaError
from ottla.metadata.nodes import broken, dump, load
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import (
    EVERY_USER,
    WILDCARD,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
    title,
)
from ottla.security.principal import Principal, parse_principal
from ottla.security.tokens import DelegationToken

CONFIG_ACLS = "/config/acls"

_TYPES = {title(kind.name): kind for kind in AclResource if kind > AclResource.ANY}
_OPERATIONS = {title(each.name): each for each in AclOperation if each > AclOperation.ANY}
_KINDS = {kind.name.lower(): kind for kind in (PatternType.LITERAL, PatternType.PREFIXED)}
_PERMISSIONS = {title(each.name): each for each in (Permission.DENY, Permission.ALLOW)}


def acl_path(pattern: ResourcePattern) -> str:
    """Return the path of a pattern's ACLs. Names of groups and users may contain any characters."""
    name = quote(pattern.name, safe="*").replace("~", "%7E")
    # No node may be named "." or "..".
    name = name.replace(".", "%2E") if name in (".", "..") else name
    folder = f"{pattern.pattern_type.name.lower()}/{title(pattern.resource_type.name)}"
    return f"{CONFIG_ACLS}/{folder}/{name}"


def pattern_of(path: str) -> ResourcePattern | None:
    """Return the pattern of the node at `path`; None for other nodes."""
    names = path.removeprefix(f"{CONFIG_ACLS}/").split("/")
    if not path.startswith(f"{CONFIG_ACLS}/") or len(names) != 3:
        return None
    kind, resource = _KINDS.get(names[0]), _TYPES.get(names[1])
    if kind is None or resource is None:
        return None
    return ResourcePattern(resource, unquote(names[2]), kind)


def encode_acls(acls: Iterable[Acl]) -> bytes:
    """Return the data of a pattern's node."""
    held = [
        {
            "principal": acl.principal,
            "permissionType": title(acl.permission.name),
            "operation": title(acl.operation.name),
            "host": acl.host,
        }
        for acl in acls
    ]
    return dump({"version": 1, "acls": held})


def decode_acls(path: str, pattern: ResourcePattern, data: bytes) -> list[Acl]:
    """Return the ACLs of a pattern. Raises OttlaError if the node's data is invalid."""
    if not data:
        return []
    held = load(path, data)
    try:
        return [
            Acl(
                pattern,
                str(each["principal"]),
                str(each["host"]),
                _OPERATIONS[each["operation"]],
                _PERMISSIONS[each["permissionType"]],
            )
            for each in held["acls"]
        ]
    except (KeyError, TypeError) as error:
        raise broken(path, error) from error


def unreadable(pattern: ResourcePattern) -> Acl:
    """Return the ACL that replaces an unreadable node: it denies everything to every user."""
    return Acl(pattern, EVERY_USER, WILDCARD, AclOperation.ALL, Permission.DENY)


TOKENS = "/delegation_token/tokens"
# Kafka's version with a requester (KIP-373); versions 1 and 2 have none.
_VERSION = 3


def token_path(token_id: str) -> str:
    """Return the path of a token."""
    return f"{TOKENS}/{token_id}"


def token_id_of(path: str) -> str | None:
    """Return the id of the token at `path`; None for other nodes."""
    parent, _, name = path.rpartition("/")
    return name if parent == TOKENS and name else None


def encode_token(token: DelegationToken) -> bytes:
    """The data of a token's node."""
    return dump(
        {
            "version": _VERSION,
            "owner": _escaped(token.owner),
            "tokenRequester": _escaped(token.requester),
            "renewers": [_escaped(one) for one in token.renewers],
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.id,
        }
    )


def decode_token(path: str, data: bytes) -> DelegationToken:
    """Return the token of a node. Raises OttlaError if its data is invalid."""
    held = load(path, data)
    token_id = token_id_of(path)
    try:
        if token_id is None or held["tokenId"] != token_id:
            raise ValueError("it is of another token")
        owner = _principal(held["owner"])
        return DelegationToken(
            token_id,
            owner,
            _principal(held["tokenRequester"]) if "tokenRequester" in held else owner,
            tuple(_principal(one) for one in held["renewers"]),
            int(held["issueTimestamp"]),
            int(held["maxTimestamp"]),
            int(held["expiryTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, OttlaError) as error:
        raise broken(path, error) from error


def _escaped(principal: Principal) -> str:
    return quote(str(principal), safe="").replace("~", "%7E")


def _principal(text: Any) -> Principal:
    return parse_principal(unquote_plus(str(text)))
