"""`ottla why lso`: what holds readers of committed records back."""

import click

from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.moment import iso, span_words
from ottla.cli.output import show_one, show_title
from ottla.cli.places import place
from ottla.cli.txn import description
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@options.bootstrap
@options.output
def lso(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Tell what holds back the last stable offset of a partition.

    \b
    ottla why lso flights-0
    ottla why lso flights-0 -o json

    Readers of committed records see what lies before the first transaction that is not decided.
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[tuple[int, int], list[OpenTransaction]]:
        return await admin.logs.stable_offsets(name), await admin.transactions.open_in([name])

    (stable, end), opened = with_admin(bootstrap, work)
    if form == "json":
        show_one(
            "json",
            {
                "partition": str(name),
                "last_stable_offset": stable,
                "high_watermark": end,
                "open": [_answer(one) for one in opened],
            },
        )
        return
    show_title(f"{name}  last stable offset {stable}  high watermark {end}")
    if not opened:
        click.echo("no transaction is open here: nothing is held back")
    elif end > stable:
        click.echo(f"{end - stable} offsets wait for the first of these transactions to end")
    for one in opened:
        _tell(one)


def _answer(one: OpenTransaction) -> dict[str, object]:
    known = one.transaction
    return {
        "start_offset": one.start_offset,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "last_written": iso(one.last_written_ms),
        "transaction": None if known is None else description(known),
    }


def _tell(one: OpenTransaction) -> None:
    click.secho(
        f"offset {one.start_offset}  producer {one.producer_id} in epoch {one.producer_epoch}, "
        f"last heard of {iso(one.last_written_ms)}",
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
