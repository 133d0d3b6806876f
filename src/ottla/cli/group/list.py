"""`ottla group list`: the groups of a cluster."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show


@click.command(name="list")
@click.option("--state", "states", multiple=True, help="Only groups in this state, such as Empty.")
@options.bootstrap
@options.output
def list_(states: tuple[str, ...], bootstrap: str, form: str) -> None:
    """List the groups.

    \b
    ottla group list
    ottla group list --state Stable -o json
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.groups.all(states))
    rows = [
        {
            "group": entry.group_id,
            "state": entry.state,
            "protocol": entry.protocol_type,
            "type": entry.kind,
        }
        for entry in found
    ]
    show(form, rows, ["group", "state", "protocol", "type"], empty="there are no groups")
