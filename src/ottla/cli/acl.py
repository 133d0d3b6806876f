"""`ottla acl`: which principal may do what."""

from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any, Protocol, TypeVar

import click

from ottla.base.errors import OttlaError
from ottla.cli.common import options
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text.output import show
from ottla.cli.text.words import principal as principal_type
from ottla.client.admin import Admin
from ottla.diagnosis.access import explain_access
from ottla.security.acl import Acl, AclFilter, ResourcePattern, check_acl
from ottla.security.acl_doubts import acl_doubts
from ottla.security.names import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclResource,
    PatternType,
    Permission,
)
from ottla.security.principal import Principal

_COLUMNS = ["permission", "principal", "host", "operation", "resource", "pattern"]

_RESOURCES = {
    kind.name.lower().replace("_", "-"): kind for kind in AclResource if kind > AclResource.ANY
}
_OPERATIONS = {
    each.name.lower().replace("_", "-"): each for each in AclOperation if each > AclOperation.ANY
}


def operation_of(text: str) -> AclOperation:
    """Parse an operation: `read`, `alter-configs`, `all`. Raises BadParameter."""
    found = _OPERATIONS.get(text.lower().replace("_", "-"))
    if found is None:
        raise click.BadParameter(f"{text} is unknown; choose from {', '.join(_OPERATIONS)}")
    return found


def rule_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments principal, operation and resource."""
    command = click.argument("resource")(command)
    command = click.argument("operation", type=operation_of)(command)
    return click.argument("principal", type=principal_type)(command)


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
    """Return the ACL that the arguments and options describe. Raises BadParameter."""
    kind = PatternType.PREFIXED if given["prefixed"] else PatternType.LITERAL
    acl = Acl(
        resource_of(given["resource"], kind),
        str(given["principal"]),
        given["host"],
        given["operation"],
        Permission.DENY if given["deny"] else Permission.ALLOW,
    )
    try:
        check_acl(acl)
    except OttlaError as error:
        raise click.BadParameter(error.message, param_hint="RESOURCE") from None
    return acl


def resource_of(text: str, kind: PatternType = PatternType.LITERAL) -> ResourcePattern:
    """Parse a resource: `topic:flights`, `topic:*`, `cluster`. Raises BadParameter."""
    word, colon, name = text.partition(":")
    found = _RESOURCES.get(word.lower().replace("_", "-"))
    is_other = found is AclResource.CLUSTER and name not in ("", CLUSTER_NAME)
    if found is None or is_other or not (colon or found is AclResource.CLUSTER):
        raise click.BadParameter(
            f"{text} is no resource; write TYPE:NAME, as topic:flights, or cluster; types are "
            f"{', '.join(_RESOURCES)}",
            param_hint="RESOURCE",
        )
    return ResourcePattern(found, CLUSTER_NAME if found is AclResource.CLUSTER else name, kind)


def _row(acl: Acl) -> dict[str, str]:
    """Return an ACL as a row of a table."""
    resource = acl.pattern.resource_type.name.lower().replace("_", "-")
    if acl.pattern.resource_type is not AclResource.CLUSTER:
        resource += f":{acl.pattern.name}"
    return {
        "permission": acl.permission.name.lower(),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name.lower().replace("_", "-"),
        "resource": resource,
        "pattern": acl.pattern.pattern_type.name.lower(),
    }


Result = TypeVar("Result")


class ListedAcls(Protocol):
    """The ACL methods that the commands use, of a broker's ACLs or of the store's."""

    async def find(self, wanted: AclFilter) -> list[Acl]: ...

    async def create(self, acls: Iterable[Acl]) -> None: ...

    async def delete(self, wanted: AclFilter) -> list[Acl]: ...


def with_acls(
    bootstrap: str, store: str | None, work: Callable[[ListedAcls], Awaitable[Result]]
) -> Result:
    """Run `work` with the ACLs of a cluster or, with `--store`, of a store; return its result."""
    if store is None:
        return with_admin(bootstrap, lambda admin: work(admin.acls))
    # Slow to import, and rarely used.
    from ottla.cli.stored_security import StoredAcls, with_store  # noqa: PLC0415

    return with_store(store, lambda stored: work(StoredAcls(stored)))


@click.group()
def acl() -> None:
    """List, add, remove and explain ACLs: which principal may do what.

    \b
    ottla acl add User:alice read topic:flights
    ottla acl add User:alice write topic:fl --prefixed
    ottla acl explain User:alice write topic:flights
    ottla acl list

    A DENY wins over every ALLOW; without an ALLOW a request is denied. Brokers check requests if
    authorizer.class.name is set.
    """  # noqa: D301


@acl.command()
@rule_arguments
@rule_options
@options.store
@options.bootstrap
@options.output
def add(store: str | None, bootstrap: str, form: str, **given: Any) -> None:
    """Add an ACL; it applies at once, on every broker.

    \b
    ottla acl add User:alice read topic:flights
    ottla acl add User:alice write topic:fl --prefixed
    ottla acl add 'User:*' describe 'topic:*' --host 10.0.0.7
    ottla acl add User:bob all topic:flights --deny

    OPERATION is read, write, create, delete, alter, describe, describe-configs, alter-configs,
    idempotent-write, cluster-action or all; read, write, delete and alter include describe.
    """  # noqa: D301
    acl = rule_of(given)
    with_acls(bootstrap, store, lambda acls: acls.create([acl]))
    for doubt in acl_doubts(acl):
        click.echo(f"this ACL may apply to no request: {doubt}", err=True)
    show(form, [_row(acl)], _COLUMNS)


@acl.command()
@rule_arguments
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="From where."
)
@connected
@options.output
async def explain(
    admin: Admin,
    principal: Principal,
    operation: AclOperation,
    resource: str,
    host: str,
    form: str,
) -> None:
    """Say whether something is allowed, and which rule decides.

    \b
    ottla acl explain User:alice write topic:flights
    ottla acl explain User:alice read group:readers --host 10.0.0.7
    """  # noqa: D301
    pattern, origin = resource_of(resource), _address(host)
    ruling = await explain_access(admin, principal, origin, operation, pattern)
    answer = {
        "allowed": "yes" if ruling.allowed else "no",
        "why": ruling.reason.value,
        "rule": "" if ruling.acl is None else str(ruling.acl),
    }
    show(form, [answer], ["allowed", "why", "rule"])


def _address(host: str) -> str:
    """Return the address as brokers see it. Raises BadParameter."""
    try:
        return str(ip_address(host))
    except ValueError:
        raise click.BadParameter(
            f"{host} is no address: brokers know clients by their IP address, as 10.0.0.7",
            param_hint="--host",
        ) from None


@acl.command(name="list")
@click.option(
    "--principal", type=principal_type, metavar="PRINCIPAL", help="ACLs that name this principal."
)
@click.option("--resource", metavar="TYPE:NAME", help="ACLs that protect this resource.")
@options.store
@options.bootstrap
@options.output
def list_(
    principal: Principal | None, resource: str | None, store: str | None, bootstrap: str, form: str
) -> None:
    """List ACLs.

    \b
    ottla acl list
    ottla acl list --principal User:alice
    ottla acl list --resource topic:flights
    """  # noqa: D301
    wanted = AclFilter(principal=None if principal is None else str(principal))
    if resource is not None:
        pattern = resource_of(resource)
        wanted = wanted._replace(
            resource_type=pattern.resource_type, name=pattern.name, pattern_type=PatternType.MATCH
        )
    found = with_acls(bootstrap, store, lambda acls: acls.find(wanted))
    show(form, [_row(acl) for acl in sorted(found)], _COLUMNS, empty="there is no such ACL")


@acl.command()
@rule_arguments
@rule_options
@options.store
@options.bootstrap
@options.output
def remove(store: str | None, bootstrap: str, form: str, **given: Any) -> None:
    """Remove an ACL, named as it was added; other ACLs stay.

    \b
    ottla acl remove User:alice read topic:flights
    ottla acl remove User:alice write topic:fl --prefixed
    """  # noqa: D301
    acl = rule_of(given)
    pattern = acl.pattern
    wanted = AclFilter(
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )
    removed = with_acls(bootstrap, store, lambda acls: acls.delete(wanted))
    if not removed:
        raise click.ClickException(
            f"there is no ACL {acl}; `ottla acl list --principal {acl.principal}` shows those of it"
        )
    show(form, [_row(one) for one in removed], _COLUMNS)
