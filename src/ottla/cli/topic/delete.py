"""`ottla topic delete`: topics with all their records."""

import click

from ottla.base.quantities import span_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.client.connection.view import TopicView
from ottla.diagnosis.partitions import offsets_of
from ottla.operations.topics import delete_topics


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=topics)
@options.yes
@options.bootstrap
@options.output
def delete(names: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete topics with all their records. This cannot be undone.

    \b
    ottla topic delete flights
    ottla topic delete flights planes --yes
    """  # noqa: D301

    async def look(admin: Admin) -> list[tuple[TopicView, int]]:
        views = await admin.topics.describe_all(names)
        return [
            (view, sum(one.offset_count for one in await offsets_of(admin, view))) for view in views
        ]

    for view, count in with_admin(bootstrap, look) if not yes else ():
        options.confirm(
            f"Delete {view.name}, {len(view.partitions)} partition(s) with {count:,} offsets in "
            "use? Its records are lost for ever."
        )
    done = with_admin(bootstrap, lambda admin: delete_topics(admin, names))
    if form == "json":
        show("json", [{"name": name, "deleted": True} for name in names], ["name"])
        return
    click.echo(
        f"Deleted {', '.join(names)}. The brokers remove the files, and so free the disk, "
        f"{span_words(done.delay_ms)} from now (file.delete.delay.ms), or at once where it is "
        "full."
    )
    for broker_id in done.brokers_down:
        click.echo(
            f"Broker {broker_id} is down and removes its replicas when it is back. Ottla keeps "
            f"the name until then, or until `ottla broker remove {broker_id}`."
        )
