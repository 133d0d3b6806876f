"""`ottla txn describe`: one transactional id and its transaction."""

from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.completion import transactional_ids
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.client.admin import Admin
from ottla.client.admin.transactions import TransactionDescription


@click.command()
@click.argument("transactional_id", metavar="ID", shell_complete=transactional_ids)
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
    """The printed form of a transaction."""
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
