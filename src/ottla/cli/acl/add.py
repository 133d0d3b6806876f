"""`ottla acl add`: adds an ACL."""

from typing import Any

import click

from ottla.cli.acl.acls import with_acls
from ottla.cli.acl.rule import COLUMNS, row, rule_arguments, rule_of, rule_options
from ottla.cli.common import options
from ottla.cli.text.output import show
from ottla.security.acl_doubts import acl_doubts


@click.command()
@rule_arguments
@rule_options
@options.store
@options.bootstrap
@options.output
def add(store: str | None, bootstrap: str, form: str, **given: Any) -> None:
    """Add an ACL; it holds at once, on every broker.

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
    show(form, [row(acl)], COLUMNS)
