"""A single ACL, and the filter that finds and deletes ACLs."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.names import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
    title,
)
from ottla.security.principal import parse_principal


class ResourcePattern(NamedTuple):
    """The resources that an ACL protects: one by name, all of a type (`*`), or by prefix."""

    resource_type: AclResource
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{title(self.resource_type.name)}:{self.pattern_type.name}:{self.name}"


class Acl(NamedTuple):
    """A rule that allows or denies `principal` to do `operation` from `host`."""

    pattern: ResourcePattern
    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"{self.permission.name} {self.principal} from {self.host} "
            f"{self.operation.name} on {self.pattern}"
        )


class AclFilter(NamedTuple):
    """A filter of ACLs; None and ANY match everything."""

    resource_type: AclResource = AclResource.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the filter matches `acl`."""
        return (
            self.resource_type in (AclResource.ANY, acl.pattern.resource_type)
            and self._matches_name(acl.pattern)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, pattern: ResourcePattern) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == WILDCARD


def check_filter(wanted: AclFilter) -> None:
    """Raise OttlaError(INVALID_REQUEST) if a number is unknown."""
    for what, value in (
        ("resource type", wanted.resource_type),
        ("pattern type", wanted.pattern_type),
        ("operation", wanted.operation),
        ("permission type", wanted.permission),
    ):
        if value == 0:
            raise _invalid(f"Unknown {what} in an ACL filter")


def check_acl(acl: Acl) -> None:
    """Check that an ACL may be stored. Raises OttlaError(INVALID_REQUEST), as Kafka does."""
    pattern = acl.pattern
    if pattern.resource_type in (AclResource.UNKNOWN, AclResource.ANY):
        raise _invalid(f"Invalid resourceType {pattern.resource_type.name}")
    if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern.pattern_type.name}; use LITERAL or PREFIXED")
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise _invalid(f"Invalid operation {acl.operation.name}")
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {acl.permission.name}; use ALLOW or DENY")
    if pattern.resource_type is AclResource.CLUSTER and pattern.name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not pattern.name:
        raise _invalid("Invalid empty resource name")
    parse_principal(acl.principal)


def _invalid(message: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, message)
