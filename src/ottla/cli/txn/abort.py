"""`ottla txn abort`: ends a transaction, and fences its producer."""

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions, transactional_ids
from ottla.cli.common.connect import with_admin
from ottla.cli.text.places import place
from ottla.operations.transactions import abort_hanging


@click.command()
@click.argument(
    "transactional_id", metavar="[ID]", required=False, shell_complete=transactional_ids
)
@click.option(
    "--partition",
    type=place,
    metavar="TOPIC-P",
    shell_complete=partitions,
    help="End what hangs in a partition.",
)
@click.option("--start-offset", type=int, help="With --partition: where that transaction begins.")
@options.bootstrap
def abort(
    transactional_id: str | None,
    partition: TopicPartition | None,
    start_offset: int | None,
    bootstrap: str,
) -> None:
    """Abort the transaction of the transactional id ID. Its producer is fenced.

    \b
    ottla txn abort loader-1
    ottla txn abort --partition flights-0 --start-offset 1042

    The second form is for a transaction that hangs: no coordinator knows it, so nothing else
    will end it (`ottla txn hanging`). It is refused where a coordinator knows it.
    """  # noqa: D301
    if (transactional_id is None) == (partition is None):
        raise click.UsageError("give an ID, or --partition with --start-offset")
    if (partition is None) != (start_offset is None):
        raise click.UsageError("--partition and --start-offset go together")
    if transactional_id is not None:
        with_admin(bootstrap, lambda admin: admin.transactions.abort(transactional_id))
        click.echo(f"What was open under {transactional_id} is aborted, and its producer fenced.")
    else:
        assert partition is not None
        assert start_offset is not None
        with_admin(bootstrap, lambda admin: abort_hanging(admin, partition, start_offset))
        click.echo(f"The transaction at {partition} offset {start_offset} is aborted.")
