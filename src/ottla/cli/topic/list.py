"""`ottla topic list`: the topics of a cluster."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.topic.rows import topic_row

_COLUMNS = ["name", "partition_count", "replication_factor", "internal"]


@click.command(name="list")
@click.option("--internal", is_flag=True, help="Also those that serve the cluster itself.")
@options.bootstrap
@options.output
def list_(internal: bool, bootstrap: str, form: str) -> None:
    """List all topics.

    \b
    ottla topic list
    ottla topic list --internal -o json
    """  # noqa: D301
    views = with_admin(bootstrap, lambda admin: admin.topics.all(internal=internal))
    columns = _COLUMNS if internal else _COLUMNS[:-1]
    show(form, [topic_row(view) for view in views], columns, empty="there are no topics")
