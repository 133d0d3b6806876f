"""`ottla txn`: transactions of coordinators and partitions."""

import time
from dataclasses import asdict
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.completion import partitions, transactional_ids
from ottla.cli.common.completion import topics as complete_topics
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import place
from ottla.cli.text.words import span
from ottla.client.admin import Admin
from ottla.client.admin.transactions import TransactionDescription
from ottla.diagnosis.transactions import blocking_transactions, hanging_transactions
from ottla.operations.election import abort_hanging


@click.group()
def txn() -> None:
    """List, describe and abort transactions, and find those that hang."""


@txn.command()
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

    The second form is for a transaction that hangs: no coordinator knows it, so nothing else will
    end it (`ottla txn hanging`). It is refused if a coordinator knows the transaction.
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


@txn.command()
@click.argument("transactional_id", metavar="ID", shell_complete=transactional_ids)
@connected
@options.output
async def describe(admin: Admin, transactional_id: str, form: str) -> None:
    """Describe the transactional id ID and its transaction.

    \b
    ottla txn describe loader-1
    ottla txn describe loader-1 -o json
    """  # noqa: D301
    found = (await admin.transactions.describe([transactional_id])).get(transactional_id)
    if found is None:
        raise OttlaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"there is no transactional id {transactional_id!r}; `ottla txn list` shows all",
        )
    show_one(form, description(found))


def description(one: TransactionDescription) -> dict[str, Any]:
    """Return a transaction in the form that is printed."""
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


_HANGING_COLUMNS = ["partition", "start_offset", "producer_id", "producer_epoch", "last_written"]
# By default, transaction.max.timeout.ms limits transactions to this time.
_OLDEST_MS = 15 * 60_000


@txn.command()
@click.option(
    "--topic",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    help="Look into this topic only; repeatable.",
)
@click.option(
    "--older-than",
    type=span,
    default=_OLDEST_MS,
    help="Only those not written to for so long: 15m unless said.",
)
@connected
@options.output
async def hanging(admin: Admin, topics: tuple[str, ...], older_than: int, form: str) -> None:
    """Find transactions that no coordinator will end. They hold readers back.

    \b
    ottla txn hanging
    ottla txn hanging --topic flights --older-than 1m
    """  # noqa: D301
    now_ms = round(time.time() * 1000)
    rows = [
        {
            "partition": str(one.partition),
            "start_offset": one.start_offset,
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "last_written": iso(one.last_written_ms),
        }
        for one in await hanging_transactions(
            admin, topics, older_than_ms=older_than, now_ms=now_ms
        )
    ]
    show(form, rows, _HANGING_COLUMNS, empty="no transaction hangs")


_BLOCKING_COLUMNS = [
    "partition",
    "transactional_id",
    "state",
    "since",
    "held_back",
    "groups",
    "remedy",
]


async def _show_blocking(admin: Admin, open_for_ms: int, form: str) -> None:
    now_ms = round(time.time() * 1000)
    rows = [
        {
            "partition": str(one.opened.partition),
            "start_offset": one.opened.start_offset,
            "transactional_id": known.transactional_id if known else None,
            "state": known.state if known else "hanging",
            "producer_id": one.opened.producer_id,
            "producer_epoch": one.opened.producer_epoch,
            "since": iso(one.since_ms),
            "last_written": iso(one.opened.last_written_ms),
            "held_back": one.held_back,
            "groups": list(one.groups),
            "remedy": one.remedy,
        }
        for one in await blocking_transactions(admin)
        for known in [one.opened.transaction]
        if now_ms - one.since_ms >= open_for_ms
    ]
    show(form, rows, _BLOCKING_COLUMNS, empty="no transaction holds readers back")


_LIST_COLUMNS = ["transactional_id", "state", "producer_id"]


@txn.command(name="list")
@click.option("--state", "states", multiple=True, help="Only those in this state: Ongoing, …")
@click.option("--open-for", type=span, help="Only those open for longer than this: 30s, 5m.")
@click.option(
    "--blocking", is_flag=True, help="Those that readers wait for, and the groups that wait."
)
@connected
@options.output
async def list_(
    admin: Admin, states: tuple[str, ...], open_for: int | None, blocking: bool, form: str
) -> None:
    """List transactional ids and their states.

    \b
    ottla txn list
    ottla txn list --state Ongoing --open-for 5m
    ottla txn list --blocking

    With --blocking: for each partition the open transaction that holds back consumers with
    read_committed, for how long, and the groups that have read everything before it.
    """  # noqa: D301
    if blocking:
        if states:
            raise click.UsageError("--blocking goes without --state")
        await _show_blocking(admin, open_for or 0, form)
        return
    found = await admin.transactions.all(
        states=states, open_for_ms=-1 if open_for is None else open_for
    )
    show(
        form, [asdict(each) for each in found], _LIST_COLUMNS, empty="there is no transactional id"
    )
