"""The authorizer: decides whether a principal may do an operation, and by which rule.

Decides as Kafka's StandardAuthorizer: super users may do everything; a matching DENY overrides
every ALLOW; without either the request is denied. An ALLOW of READ, WRITE, DELETE or ALTER includes
DESCRIBE, and an ALLOW of ALTER_CONFIGS includes DESCRIBE_CONFIGS.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import WILDCARD, AclOperation, AclResource, PatternType, Permission
from ottla.security.principal import Principal
from ottla.security.rules import AclRules, comes_from, naming

# Cached decisions; the cache is cleared when it is full, or the rules change.
_REMEMBERED_MAX = 65_536
# Longer names are not cached, because a client without permissions can send any names of any
# length.
_REMEMBERED_CHARACTERS_MAX = 300
# A name that Kafka uses to check whether a principal may use any resource of a type.
_SOME_NAME = "hardcode"

_INCLUDING: dict[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        (
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        )
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    ),
}


class RulingReason(Enum):
    """The reason why a request is allowed or denied, as a sentence."""

    SUPER_USER = "the principal is one of super.users"
    ALLOWED = "an ACL allows it, and none denies it"
    DENIED = "an ACL denies it; a DENY wins over every ALLOW"
    NO_RULE = "no ACL allows it"
    EVERYONE = (
        "no ACL protects the resource, and allow.everyone.if.no.acl.found opens such resources"
    )


class Ruling(NamedTuple):
    """A decision, and the ACL that decided, if any."""

    allowed: bool
    reason: RulingReason
    acl: Acl | None = None


class Authorizer:
    """Decides by the newest rules."""

    def __init__(
        self,
        super_users: frozenset[Principal] = frozenset(),
        *,
        allow_everyone_if_no_acl: bool = False,
        rules: AclRules | None = None,
    ) -> None:
        self.super_users = super_users
        self._allow_everyone = allow_everyone_if_no_acl
        self._decided: dict[tuple[Principal, str, AclOperation, AclResource, str], bool] = {}
        self.rules = rules or AclRules()
        # Grows with each change, which may forbid what an earlier version allowed.
        self.version = 1

    def set_pattern(self, pattern: ResourcePattern, acls: Iterable[Acl]) -> None:
        """Replace the ACLs of one pattern."""
        self.rules.set_pattern(pattern, acls)
        self._forget()

    def set_rules(self, rules: AclRules) -> None:
        """Replace all rules."""
        self.rules = rules
        self._forget()

    def _forget(self) -> None:
        self._decided = {}
        self.version += 1

    # Hot: once per topic of a request that takes the slow path.
    def allows(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: AclResource,
        name: str,
    ) -> bool:
        """Whether the operation is allowed on the resource with that type and name."""
        asked = (principal, host, operation, kind, name)
        allowed = self._decided.get(asked)
        if allowed is None:
            allowed = self.explain(principal, host, operation, kind, name).allowed
            if len(name) <= _REMEMBERED_CHARACTERS_MAX:
                if len(self._decided) >= _REMEMBERED_MAX:
                    self._decided = {}
                self._decided[asked] = allowed
        return allowed

    def explain(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: AclResource,
        name: str,
    ) -> Ruling:
        """Return the decision with its reason."""
        if principal in self.super_users:
            return Ruling(allowed=True, reason=RulingReason.SUPER_USER)
        client = str(principal)
        is_protected = False
        allowing: Acl | None = None
        for section in self.rules.sections(kind, name):
            is_protected = True
            for acl in naming(section, client):
                if not (_covers(acl, operation) and comes_from(acl, host)):
                    continue
                if acl.permission is Permission.DENY:
                    return Ruling(allowed=False, reason=RulingReason.DENIED, acl=acl)
                allowing = allowing or acl
        if allowing is not None:
            return Ruling(allowed=True, reason=RulingReason.ALLOWED, acl=allowing)
        if not is_protected and self._allow_everyone:
            return Ruling(allowed=True, reason=RulingReason.EVERYONE)
        return Ruling(allowed=False, reason=RulingReason.NO_RULE)

    def allows_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResource
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type (KIP-679)."""
        if self.allows(principal, host, operation, kind, _SOME_NAME):
            return True
        allowed: list[Acl] = []
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        for acl in self.rules.of_type(kind, str(principal)):
            if acl.operation not in (operation, AclOperation.ALL) or not comes_from(acl, host):
                continue
            if acl.permission is Permission.ALLOW:
                allowed.append(acl)
            elif acl.pattern.pattern_type is PatternType.PREFIXED:
                denied_prefixes.add(acl.pattern.name)
            else:
                denied_names.add(acl.pattern.name)
        if WILDCARD in denied_names:
            return False
        return any(
            (acl.pattern.pattern_type is PatternType.LITERAL and acl.pattern.name == WILDCARD)
            or not _is_overruled(acl, denied_names, denied_prefixes)
            for acl in allowed
        )


def _covers(acl: Acl, operation: AclOperation) -> bool:
    if acl.operation in (operation, AclOperation.ALL):
        return True
    return acl.permission is Permission.ALLOW and acl.operation in _INCLUDING.get(operation, ())


def _is_overruled(acl: Acl, denied_names: set[str], denied_prefixes: set[str]) -> bool:
    """Whether a DENY covers every resource of an ALLOW."""
    name = acl.pattern.name
    if acl.pattern.pattern_type is PatternType.LITERAL and name in denied_names:
        return True
    return any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))
