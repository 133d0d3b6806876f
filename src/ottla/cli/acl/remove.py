"""`ottla acl remove`: removes an ACL."""

from typing import Any

import click

from ottla.cli.acl.acls import with_acls
from ottla.cli.acl.rule import COLUMNS, row, rule_arguments, rule_of, rule_options
from ottla.cli.common import options
from ottla.cli.text.output import show
from ottla.security.acl import AclFilter


@click.command()
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
        pattern.type,
        pattern.name,
        pattern.kind,
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
    show(form, [row(one) for one in removed], COLUMNS)
