"""`ottla why lso`: the transaction that holds back read_committed consumers."""

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso, span_words
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one, show_title
from ottla.cli.text.places import place
from ottla.cli.txn.describe import description
from ottla.client.admin.transactions import OpenTransaction
from ottla.diagnosis.transactions import stable_offset_of


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@options.bootstrap
@options.output
def lso(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Show what holds back the last stable offset of a partition.

    \b
    ottla why lso flights-0
    ottla why lso flights-0 -o json

    Readers of committed records see what lies before the first transaction that is not decided.
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: stable_offset_of(admin, name))
    if form == "json":
        show_one(
            "json",
            {
                "partition": str(name),
                "last_stable_offset": found.last_stable_offset,
                "high_watermark": found.high_watermark,
                "open": [_answer(one) for one in found.opened],
            },
        )
        return
    show_title(
        f"{name}  last stable offset {found.last_stable_offset}  "
        f"high watermark {found.high_watermark}"
    )
    if not found.opened:
        click.echo("no transaction is open here: nothing is held back")
    elif found.held_back > 0:
        click.echo(f"{found.held_back} offsets wait for the first of these transactions to end")
    for one in found.opened:
        _show(one)


def _answer(one: OpenTransaction) -> dict[str, object]:
    known = one.transaction
    return {
        "start_offset": one.start_offset,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "last_written": iso(one.last_written_ms),
        "transaction": None if known is None else description(known),
    }


def _show(one: OpenTransaction) -> None:
    click.secho(
        f"offset {one.start_offset}  producer {one.producer_id} in epoch {one.producer_epoch}, "
        f"last wrote at {iso(one.last_written_ms)}",
        bold=True,
    )
    known = one.transaction
    if known is None:
        click.echo(
            "  no coordinator knows it: it hangs. If its producer is gone, "
            f"`ottla txn abort --partition {one.partition} --start-offset {one.start_offset}` "
            "ends it"
        )
        return
    click.echo(
        f"  {known.transactional_id}  {known.state} since {iso(known.start_ms)}, coordinated by "
        f"broker {known.coordinator_id}"
    )
    if known.state == "Ongoing":
        click.echo(
            f"  it is aborted {span_words(known.timeout_ms)} after its begin "
            "(transaction.timeout.ms of its producer), at "
            f"{iso(known.start_ms + known.timeout_ms)} or shortly after; "
            f"`ottla txn abort {known.transactional_id}` does so now"
        )
