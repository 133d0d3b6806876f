"""`ottla txn`: transactions, as their coordinators and as the partitions see them."""

import time
from dataclasses import asdict
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.moment import iso, span_ms
from ottla.cli.output import show, show_one
from ottla.cli.places import place
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction, TransactionDescription

_COLUMNS = ["transactional_id", "state", "producer_id"]
_HANGING_COLUMNS = ["partition", "start_offset", "producer_id", "producer_epoch", "last_written"]
# Longer than any transaction may take, unless transaction.max.timeout.ms says otherwise.
_OLDEST_MS = 15 * 60_000


def span(text: str | int) -> int:
    """Milliseconds of `30s`, `5m`, the type of an option. Raises click.BadParameter."""
    found = text if isinstance(text, int) else span_ms(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no span of time; write 30s, 5m or 2h")
    return found


@click.group()
def txn() -> None:
    """List, describe and abort transactions, and find those that hang."""


@txn.command(name="list")
@click.option("--state", "states", multiple=True, help="Only those in this state: Ongoing, …")
@click.option("--open-for", type=span, help="Only those open for longer than this: 30s, 5m.")
@options.bootstrap
@options.output
def list_(states: tuple[str, ...], open_for: int | None, bootstrap: str, form: str) -> None:
    """List transactional ids and their states.

    \b
    ottla txn list
    ottla txn list --state Ongoing --open-for 5m
    """  # noqa: D301
    found = with_admin(
        bootstrap,
        lambda admin: admin.transactions.all(
            states=states, open_for_ms=-1 if open_for is None else open_for
        ),
    )
    show(form, [asdict(each) for each in found], _COLUMNS, empty="there is no transactional id")


@txn.command()
@click.argument("transactional_id", metavar="ID")
@options.bootstrap
@options.output
def describe(transactional_id: str, bootstrap: str, form: str) -> None:
    """Describe the transactional id ID and its transaction.

    \b
    ottla txn describe loader-1
    ottla txn describe loader-1 -o json
    """  # noqa: D301

    async def work(admin: Admin) -> TransactionDescription | None:
        return (await admin.transactions.describe([transactional_id])).get(transactional_id)

    found = with_admin(bootstrap, work)
    if found is None:
        raise OttlaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"there is no transactional id {transactional_id!r}; `ottla txn list` shows all",
        )
    show_one(form, description(found))


def description(one: TransactionDescription) -> dict[str, Any]:
    """A transaction as it is shown."""
    return {
        "transactional_id": one.transactional_id,
        "state": one.state,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator": one.coordinator_id,
        "timeout_ms": one.timeout_ms,
        "started": iso(one.start_ms) if one.start_ms >= 0 else None,
        "partitions": list(map(str, one.partitions)),
    }


@txn.command()
@click.argument("transactional_id", metavar="[ID]", required=False)
@click.option("--partition", type=place, metavar="TOPIC-P", help="End what hangs in a partition.")
@click.option("--start-offset", type=int, help="With --partition: where that transaction begins.")
@options.bootstrap
def abort(
    transactional_id: str | None,
    partition: TopicPartition | None,
    start_offset: int | None,
    bootstrap: str,
) -> None:
    """Abort what is open under the transactional id ID; its producer is fenced.

    \b
    ottla txn abort loader-1
    ottla txn abort --partition flights-0 --start-offset 1042

    The second form is for a transaction that hangs: no coordinator knows it, so nobody else will
    end it (`ottla txn hanging`). It is refused where one does.
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
        with_admin(bootstrap, lambda admin: _abort_hanging(admin, partition, start_offset))
        click.echo(f"The transaction at {partition} offset {start_offset} is aborted.")


async def _abort_hanging(admin: Admin, partition: TopicPartition, start_offset: int) -> None:
    for one in await admin.transactions.open_in([partition]):
        if one.start_offset == start_offset:
            if one.transaction is not None:
                raise OttlaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"the transaction at {partition} offset {start_offset} is that of "
                    f"{one.transaction.transactional_id!r}, which its coordinator will end; "
                    f"`ottla txn abort {one.transaction.transactional_id}` does so now",
                )
            await admin.transactions.abort_in_partition(one)
            return
    raise OttlaError(
        ErrorCode.INVALID_TXN_STATE,
        f"no open transaction begins at {partition} offset {start_offset}; "
        f"`ottla why lso {partition}` shows those that are open",
    )


@txn.command()
@click.option("--topic", "topics", multiple=True, help="Look into this topic only; repeatable.")
@click.option(
    "--older-than",
    type=span,
    default=_OLDEST_MS,
    help="Only those not written to for so long: 15m unless said.",
)
@options.bootstrap
@options.output
def hanging(topics: tuple[str, ...], older_than: int, bootstrap: str, form: str) -> None:
    """Find transactions that no coordinator will end, and that hold readers back.

    \b
    ottla txn hanging
    ottla txn hanging --topic flights --older-than 1m
    """  # noqa: D301

    async def work(admin: Admin) -> list[OpenTransaction]:
        standings = await admin.partitions.standings(topics or None)
        return await admin.transactions.open_in(one.name for one in standings if not one.is_offline)

    found = with_admin(bootstrap, work)
    now_ms = round(time.time() * 1000)
    rows = [
        {
            "partition": str(one.partition),
            "start_offset": one.start_offset,
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "last_written": iso(one.last_written_ms),
        }
        for one in found
        if one.transaction is None and now_ms - one.last_written_ms >= older_than
    ]
    show(form, rows, _HANGING_COLUMNS, empty="no transaction hangs")
