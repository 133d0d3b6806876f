"""`ottla txn hanging`: transactions that no coordinator will end."""

import time

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.completion import topics as complete_topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.words import span
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction
from ottla.diagnosis.transactions import hanging_transactions

_COLUMNS = ["partition", "start_offset", "producer_id", "producer_epoch", "last_written"]
# Longer than any transaction may take, unless transaction.max.timeout.ms is raised.
_OLDEST_MS = 15 * 60_000


@click.command()
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
@options.bootstrap
@options.output
def hanging(topics: tuple[str, ...], older_than: int, bootstrap: str, form: str) -> None:
    """Find transactions that no coordinator will end. They hold readers back.

    \b
    ottla txn hanging
    ottla txn hanging --topic flights --older-than 1m
    """  # noqa: D301

    async def work(admin: Admin) -> list[OpenTransaction]:
        now_ms = round(time.time() * 1000)
        return await hanging_transactions(admin, topics, older_than_ms=older_than, now_ms=now_ms)

    rows = [
        {
            "partition": str(one.partition),
            "start_offset": one.start_offset,
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "last_written": iso(one.last_written_ms),
        }
        for one in with_admin(bootstrap, work)
    ]
    show(form, rows, _COLUMNS, empty="no transaction hangs")
