"""`ottla topic sizes`: the disk usage of topics."""

from dataclasses import asdict

import click

from ottla.base.quantities import size_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.diagnosis.sizes import topic_sizes

_COLUMNS = ["name", "partition_count", "leader_bytes", "replica_bytes"]


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=topics)
@options.bootstrap
@options.output
def sizes(names: tuple[str, ...], bootstrap: str, form: str) -> None:
    """Show how much disk topics take, the largest first.

    \b
    ottla topic sizes
    ottla topic sizes flights planes -o json

    Leader bytes are those of one copy, replica bytes those of all copies on living brokers;
    `ottla cluster log-dirs` shows them by broker and folder.
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: topic_sizes(admin, names or None))
    rows = [asdict(one) for one in found]
    for row in rows if form != "json" else ():
        row.update({name: size_words(row[name]) for name in _COLUMNS[2:]})
    show(form, rows, _COLUMNS, empty="there are no topics")
