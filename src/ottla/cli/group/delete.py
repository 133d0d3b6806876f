"""`ottla group delete`: groups without members, with their committed offsets."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import groups
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.operations.group_offsets import require_all_idle


@click.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=groups)
@options.yes
@options.bootstrap
@options.output
def delete(group_ids: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete groups without members, and their committed offsets.

    \b
    ottla group delete audit
    ottla group delete audit audit-test --yes
    """  # noqa: D301
    with_admin(bootstrap, lambda admin: require_all_idle(admin, group_ids, "delete"))
    if not yes:
        options.confirm(f"Delete {', '.join(group_ids)}, and their committed offsets?")
    with_admin(bootstrap, lambda admin: admin.groups.delete(group_ids))
    if form == "json":
        show("json", [{"group": name, "deleted": True} for name in group_ids], ["group"])
    else:
        click.echo(f"Deleted {', '.join(group_ids)}.")
