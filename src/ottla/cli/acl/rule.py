"""The words in which commands name an ACL: PRINCIPAL OPERATION RESOURCE."""

from collections.abc import Callable
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.security.acl import Acl, Pattern, check_acl
from ottla.security.names import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
)
from ottla.security.principal import Principal, parse_principal

COLUMNS = ["permission", "principal", "host", "operation", "resource", "pattern"]

_RESOURCES = {
    kind.name.lower().replace("_", "-"): kind for kind in AclResource if kind > AclResource.ANY
}
_OPERATIONS = {
    each.name.lower().replace("_", "-"): each for each in AclOperation if each > AclOperation.ANY
}


def rule_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments principal, operation and resource."""
    for name in ("resource", "operation", "principal"):
        command = click.argument(name)(command)
    return command


def rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an ACL."""
    for decorate in (
        click.option("--deny", is_flag=True, help="Deny instead of allow."),
        click.option("--prefixed", is_flag=True, help="Every resource whose name begins so."),
        click.option(
            "--host", default=WILDCARD, show_default=True, metavar="ADDRESS", help="From where."
        ),
    ):
        command = decorate(command)
    return command


def rule_of(given: dict[str, Any]) -> Acl:
    """The ACL of the arguments and options. Raises BadParameter."""
    kind = PatternType.PREFIXED if given["prefixed"] else PatternType.LITERAL
    acl = Acl(
        resource_of(given["resource"], kind),
        str(principal_of(given["principal"])),
        given["host"],
        operation_of(given["operation"]),
        Permission.DENY if given["deny"] else Permission.ALLOW,
    )
    try:
        check_acl(acl)
    except OttlaError as error:
        raise click.BadParameter(error.message, param_hint="RESOURCE") from None
    return acl


def principal_of(text: str) -> Principal:
    """`User:alice`. Raises BadParameter."""
    try:
        return parse_principal(text)
    except OttlaError as error:
        raise click.BadParameter(error.message, param_hint="PRINCIPAL") from None


def operation_of(text: str) -> AclOperation:
    """`read`, `alter-configs`, `all`. Raises BadParameter."""
    found = _OPERATIONS.get(text.lower().replace("_", "-"))
    if found is None:
        raise click.BadParameter(
            f"{text} is unknown; choose from {', '.join(_OPERATIONS)}", param_hint="OPERATION"
        )
    return found


def resource_of(text: str, kind: PatternType = PatternType.LITERAL) -> Pattern:
    """`topic:flights`, `group:readers`, `topic:*`, `cluster`. Raises BadParameter."""
    word, colon, name = text.partition(":")
    found = _RESOURCES.get(word.lower().replace("_", "-"))
    is_other = found is AclResource.CLUSTER and name not in ("", CLUSTER_NAME)
    if found is None or is_other or not (colon or found is AclResource.CLUSTER):
        raise click.BadParameter(
            f"{text} is no resource; write TYPE:NAME, as topic:flights, or cluster; types are "
            f"{', '.join(_RESOURCES)}",
            param_hint="RESOURCE",
        )
    return Pattern(found, CLUSTER_NAME if found is AclResource.CLUSTER else name, kind)


def row(acl: Acl) -> dict[str, str]:
    """An ACL as a row of a table."""
    resource = acl.pattern.type.name.lower().replace("_", "-")
    if acl.pattern.type is not AclResource.CLUSTER:
        resource += f":{acl.pattern.name}"
    return {
        "permission": acl.permission.name.lower(),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name.lower().replace("_", "-"),
        "resource": resource,
        "pattern": acl.pattern.kind.name.lower(),
    }
