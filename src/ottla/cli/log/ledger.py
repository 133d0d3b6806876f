"""`ottla log ledger`: the fate of each offset of a partition, from its leader's account."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.places import place
from ottla.client.admin import Admin
from ottla.client.ranges.account import OffsetAccount
from ottla.diagnosis.ledger import OffsetLoss, losses

_TERMS = ("data", "control", "aborted", "undecided", "compacted", "deleted", "lost", "unexplained")
_BY_COLUMNS = ["term", "offsets", "by", "when"]


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@click.option("--from", "start", type=click.IntRange(0), default=0, help="The first offset.")
@click.option(
    "--to",
    "end",
    type=click.IntRange(0),
    default=None,
    help="The offset to end before; default: the high watermark.",
)
@options.bootstrap
@options.output
@click.pass_context
def ledger(
    ctx: click.Context,
    name: TopicPartition,
    start: int,
    end: int | None,
    bootstrap: str,
    form: str,
) -> None:
    """Account for every offset of TOPIC-P: what became of it.

    \b
    ottla log ledger flights-0
    ottla log ledger flights-0 --from 1000 --to 2000 -o json

    Each term is counted from evidence of its own: batches, markers, what each pass of the cleaner
    noted, what retention noted. Exits with 1 where offsets are unexplained.
    """  # noqa: D301

    async def work(admin: Admin) -> OffsetAccount:
        return await admin.logs.account(name, start, end)

    account = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", _answer(account))
    else:
        _show(account)
    if account.unexplained:
        ctx.exit(1)


def _show(account: OffsetAccount) -> None:
    show_title(
        f"{account.name}  offsets {account.start} to {account.end}  "
        f"leader {account.broker_id} in epoch {account.leader_epoch}  "
        f"log {account.log_start_offset} to {account.log_end_offset}"
    )
    rows = [
        {"term": term, "offsets": getattr(account, term)}
        for term in _TERMS
        if getattr(account, term) or term in ("data", "unexplained")
    ]
    rows.append({"term": "sum", "offsets": account.end - account.start})
    show("table", rows, ["term", "offsets"])
    causes = [_cause_row(loss) for loss in losses(account)]
    if causes:
        click.echo()
        show("table", causes, _BY_COLUMNS)


def _cause_row(loss: OffsetLoss) -> dict[str, Any]:
    when = iso(loss.at_ms) if loss.at_ms >= 0 else "-"
    return {"term": loss.term, "offsets": loss.offsets, "by": loss.cause, "when": when}


def _answer(account: OffsetAccount) -> dict[str, Any]:
    answer = asdict(account)
    answer["name"] = str(account.name)
    answer["deleted_by"] = [
        {
            "start": one.start,
            "end": one.end,
            "counts": {cause.name.lower(): count for cause, count in one.counts.items()},
            "first_ms": one.first_ms,
            "last_ms": one.last_ms,
        }
        for one in account.deleted_by
    ]
    return answer
