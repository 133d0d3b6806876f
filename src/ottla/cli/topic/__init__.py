"""`ottla topic`: creates, describes, changes and deletes topics. Begin with `definition`."""

import click

from ottla.cli.topic.definition import alter, create, delete, describe, list_
from ottla.cli.topic.records import compact, delete_records, offsets, sizes
from ottla.cli.topic.users import unused, users


@click.group()
def topic() -> None:
    """Create, list, describe, alter, compact and delete topics; see their users."""


for verb in (
    alter,
    compact,
    create,
    delete,
    delete_records,
    describe,
    list_,
    offsets,
    sizes,
    unused,
    users,
):
    topic.add_command(verb)
