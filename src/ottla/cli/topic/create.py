"""`ottla topic create`: a topic, and what its settings mean."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.cli.text.settings import changed_rows, show_notes
from ottla.cli.topic.rows import topic_row
from ottla.client.admin import Admin
from ottla.diagnosis.consequences import after_creation
from ottla.operations.topics import CreatedTopic, create_topic


@click.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="How many; else the broker's.")
@click.option("--replication-factor", "-r", type=click.IntRange(1), help="Copies of each.")
@options.settings("retention.ms=7d")
@click.option("--if-not-exists", is_flag=True, help="Succeed where the topic is there already.")
@options.bootstrap
@options.output
def create(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignments: tuple[str, ...],
    if_not_exists: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Create the topic NAME, and show what its settings mean.

    \b
    ottla topic create flights
    ottla topic create flights --partitions 6 --set retention.ms=1d
    ottla topic create planes --set cleanup.policy=compact

    `ottla config explain NAME` says what a setting does.
    """  # noqa: D301
    settings = options.parse_settings(assignments)

    async def work(admin: Admin) -> CreatedTopic:
        return await create_topic(
            admin, name, partitions, replication_factor, settings, if_not_exists=if_not_exists
        )

    done = with_admin(bootstrap, work)
    if form == "json":
        answer = {
            **topic_row(done.view),
            "created": done.is_new,
            "replicas_down": list(done.brokers_down),
            "settings": changed_rows(done.configs),
        }
        show_one("json", answer)
        return
    sentences = after_creation(len(done.view.partitions), done.replication_factor, done.values)
    click.echo(f"{'Created' if done.is_new else 'There is already'} {name}: {sentences}")
    show_notes(done.notes)
