"""`ottla log`: shows the contents of log files, and what became of offsets."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.places import place
from ottla.client.admin import Admin
from ottla.client.common.offset_account import OffsetAccount
from ottla.diagnosis.retention import OffsetLoss, losses
from ottla.diagnosis.segments import NoBatch, SegmentBatch, batches_in, segments
from ottla.record.codec import Record
from ottla.record.compression import Compression
from ottla.record.control import read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import CorruptBatch, records


@click.group()
def log() -> None:
    """Look into log files."""


_COLUMNS = [
    "base_offset",
    "last_offset",
    "records",
    "position",
    "size",
    "codec",
    "max_timestamp",
    "leader_epoch",
    "producer",
    "kind",
    "checksum",
]


@log.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--records", "with_records", is_flag=True, help="Show the records, a line of JSON each."
)
@click.option(
    "--from", "first", type=int, default=0, help="Start at the batch that holds this offset."
)
@click.option("-n", "count", type=int, default=None, help="Show at most this many batches.")
@options.output
@click.pass_context
def dump(
    ctx: click.Context, path: Path, with_records: bool, first: int, count: int | None, form: str
) -> None:
    """Show the batches in PATH, a partition's folder or a .log file.

    \b
    ottla log dump ottla-data/flights-0
    ottla log dump ottla-data/flights-0/00000000000000000000.log --records -n 1

    Every checksum is checked; exits with 1 if a batch is damaged. Bytes that are not a batch are
    skipped, with a warning.
    """  # noqa: D301
    shown: list[dict[str, Any]] = []
    damaged = False
    for file in segments(path):
        for found in batches_in(file):
            if isinstance(found, NoBatch):
                damaged |= not found.is_end
                _warn(found)
                continue
            if found.header.last_offset < first:
                continue
            if count is not None and len(shown) >= count:
                break
            damaged |= found.fault is not None
            row = _row(found)
            shown.append(row)
            if with_records:
                if form == "json":
                    click.echo(json.dumps(row))
                _print_records(found)
    if not with_records:
        show(form, shown, _COLUMNS, empty="no batches")
    if damaged:
        ctx.exit(1)


def _warn(found: NoBatch) -> None:
    where = f"{found.file.name}: {found.size} bytes from position {found.position} on are no"
    words = (
        f"{where} whole batch (a torn end; the broker cuts it off when it starts)"
        if found.is_end
        else f"{where} batch: {found.why}"
    )
    click.secho(words, fg="yellow", err=True)


def _row(found: SegmentBatch) -> dict[str, Any]:
    header = found.header
    return {
        "segment": found.file.name,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "position": found.position,
        "size": header.size,
        "codec": Compression(header.compression).setting if header.compression <= 4 else "unknown",
        "max_timestamp": iso(header.max_timestamp),
        "leader_epoch": header.leader_epoch,
        "producer": f"{header.producer_id}/{header.producer_epoch} #{header.base_sequence}"
        if header.producer_id >= 0
        else "-",
        "kind": _kind(header),
        "checksum": found.fault or "right",
    }


def _kind(header: BatchHeader) -> str:
    if header.is_control:
        return "control"
    return "transactional" if header.is_transactional else "data"


def _print_records(batch: SegmentBatch) -> None:
    header = batch.header
    try:
        found = records(batch.buffer, batch.position, header, check_crc=False)
    except CorruptBatch as error:
        click.echo(json.dumps({"offset": header.base_offset, "unreadable": error.message}))
        return
    for record in found:
        line: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
        if header.is_control:
            line["control"] = _control(record)
        else:
            line["key"], line["value"] = _readable(record.key), _readable(record.value)
            if record.headers:
                line["headers"] = [[name, _readable(value)] for name, value in record.headers]
        click.echo(json.dumps(line, ensure_ascii=False))


def _control(record: Record) -> str:
    try:
        marker = read_marker(record)
    except CorruptBatch as error:
        return error.message or "unreadable"
    return marker.control_type.name if marker else "unknown"


def _readable(content: bytes | None) -> str | None:
    """Return bytes as text, or in hexadecimal if they are not text."""
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{content.hex()}"


_TERMS = ("data", "control", "aborted", "undecided", "compacted", "deleted", "lost", "unexplained")
_BY_COLUMNS = ["term", "offsets", "by", "when"]


@log.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@click.option("--from", "start", type=click.IntRange(0), default=0, help="The first offset.")
@click.option(
    "--to",
    "end",
    type=click.IntRange(0),
    default=None,
    help="The offset to end before; default: the high watermark.",
)
@connected
@options.output
@click.pass_context
async def ledger(
    ctx: click.Context, admin: Admin, name: TopicPartition, start: int, end: int | None, form: str
) -> None:
    """Account for every offset of TOPIC-P: what became of it.

    \b
    ottla log ledger flights-0
    ottla log ledger flights-0 --from 1000 --to 2000 -o json

    Each number comes from its own evidence: batches, markers, the notes of each pass of the cleaner
    and of retention. Exits with 1 if offsets are unexplained.
    """  # noqa: D301
    account = await admin.logs.account(name, start, end)
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
