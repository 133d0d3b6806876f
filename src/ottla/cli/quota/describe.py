"""`ottla quota describe`: which limits apply to a client."""

from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.quota.entity import entity_of, entity_options, number
from ottla.cli.text.output import show
from ottla.diagnosis.quotas import limits_of


@click.command()
@entity_options
@options.bootstrap
@options.output
def describe(bootstrap: str, form: str, **given: Any) -> None:
    """Show which limits apply to a client, and where each is set.

    \b
    ottla quota describe --user ANONYMOUS --client-id loader
    ottla quota describe --default-user
    ottla quota describe --ip 10.0.0.7
    """  # noqa: D301
    entity = entity_of(given)
    found = with_admin(bootstrap, lambda admin: admin.quotas.all())
    rows = [
        {"quota": held.key.value, "limit": number(held.limit), "set_for": str(held.set_for)}
        for held in limits_of(entity, found)
    ]
    show(form, rows, ["quota", "limit", "set_for"], empty=f"nothing limits {entity}")
