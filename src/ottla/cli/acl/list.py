"""`ottla acl list`: the ACLs there are."""

import click

from ottla.cli.acl.acls import with_acls
from ottla.cli.acl.rule import COLUMNS, principal_of, resource_of, row
from ottla.cli.common import options
from ottla.cli.text.output import show
from ottla.security.acl import AclFilter
from ottla.security.names import PatternType


@click.command(name="list")
@click.option("--principal", metavar="PRINCIPAL", help="ACLs that name this principal.")
@click.option("--resource", metavar="TYPE:NAME", help="ACLs that protect this resource.")
@options.store
@options.bootstrap
@options.output
def list_(
    principal: str | None, resource: str | None, store: str | None, bootstrap: str, form: str
) -> None:
    """List ACLs.

    \b
    ottla acl list
    ottla acl list --principal User:alice
    ottla acl list --resource topic:flights
    """  # noqa: D301
    wanted = AclFilter(principal=None if principal is None else str(principal_of(principal)))
    if resource is not None:
        pattern = resource_of(resource)
        wanted = wanted._replace(type=pattern.type, name=pattern.name, kind=PatternType.MATCH)
    found = with_acls(bootstrap, store, lambda acls: acls.find(wanted))
    show(form, [row(acl) for acl in sorted(found)], COLUMNS, empty="there is no such ACL")
