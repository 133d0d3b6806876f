"""`ottla log`: what stands in the files of a log. `dump` reads only, and needs no broker."""

import json
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli import options
from ottla.cli.ledger import ledger
from ottla.cli.moment import iso
from ottla.cli.output import show
from ottla.record.codec import Record
from ottla.record.compression import Compression
from ottla.record.control import read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import CorruptBatch, batches, check_batch, records
from ottla.storage.directory.names import parse_segment_file
from ottla.storage.recovery.damage import valid_batch_behind

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


@click.group()
def log() -> None:
    """Look into log files."""


@log.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
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
    ctx: click.Context,
    path: Path,
    with_records: bool,
    first: int,
    count: int | None,
    form: str,
) -> None:
    """Show the batches in PATH, a .log file or the folder of a partition.

    \b
    ottla log dump ottla-data/flights-0
    ottla log dump ottla-data/flights-0/00000000000000000000.log --records -n 1

    Every checksum is checked; exits with 1 where a batch is damaged. What is no batch is passed
    over and told.
    """  # noqa: D301
    shown: list[dict[str, Any]] = []
    damaged = False
    for file in _segments(path):
        for buffer, position, header in _batches(file):
            if header is None:
                damaged = True
                continue
            if header.last_offset < first:
                continue
            if count is not None and len(shown) >= count:
                break
            row = _described(file, buffer, position, header)
            damaged |= row["checksum"] != "right"
            shown.append(row)
            if with_records:
                click.echo(json.dumps(row)) if form == "json" else None
                _print_records(buffer, position, header)
    if not with_records:
        show(form, shown, _COLUMNS, empty="no batches")
    if damaged:
        ctx.exit(1)


log.add_command(ledger)


def _segments(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob("*.log"))
    if not found:
        raise OttlaError(
            ErrorCode.LOG_DIR_NOT_FOUND,
            f"{path} holds no .log files; give the folder of a partition, such as "
            "ottla-data/flights-0",
        )
    return found


def _batches(file: Path) -> Iterator[tuple[memoryview, int, BatchHeader | None]]:
    """Each batch; a header of None stands for bytes that are none, with others behind them."""
    with file.open("rb") as opened:
        if file.stat().st_size == 0:
            return
        mapped = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    known = parse_segment_file(file.name)
    base_offset = 0 if known is None else known[0]
    end = 0
    while end < len(mapped):
        begin, what = end, "a batch that ends behind the file"
        try:
            for position, header in batches(mapped[begin:]):
                yield mapped, begin + position, header
                end = begin + position + header.size
        except CorruptBatch as error:
            what = error.message or what
        if end == len(mapped):
            return
        behind = valid_batch_behind(_Mapped(mapped), end + 1, len(mapped), base_offset)
        if behind < 0:
            break
        _warn(f"{file.name}: {behind - end} bytes from position {end} on are no batch: {what}")
        yield mapped, end, None
        end = behind
    _warn(
        f"{file.name}: {len(mapped) - end} bytes from position {end} on are no whole batch "
        "(a torn end; the broker cuts it off when it starts)"
    )


class _Mapped:
    """A file in memory, as `valid_batch_behind` reads it."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def pread(self, size: int, position: int, /) -> bytes:
        return bytes(self._content[position : position + size])


def _warn(words: str) -> None:
    click.secho(words, fg="yellow", err=True)


def _described(
    file: Path, buffer: memoryview, position: int, header: BatchHeader
) -> dict[str, Any]:
    try:
        check_batch(buffer, position, header)
        checksum = "right"
    except CorruptBatch as error:
        checksum = error.message
    return {
        "segment": file.name,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "position": position,
        "size": header.size,
        "codec": Compression(header.compression).setting if header.compression <= 4 else "unknown",
        "max_timestamp": iso(header.max_timestamp),
        "leader_epoch": header.leader_epoch,
        "producer": f"{header.producer_id}/{header.producer_epoch} #{header.base_sequence}"
        if header.producer_id >= 0
        else "-",
        "kind": _kind(header),
        "checksum": checksum,
    }


def _kind(header: BatchHeader) -> str:
    if header.is_control:
        return "control"
    return "transactional" if header.is_transactional else "data"


def _print_records(buffer: memoryview, position: int, header: BatchHeader) -> None:
    try:
        found = records(buffer, position, header, check_crc=False)
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
    """Text where it is text, else its bytes in hexadecimal digits."""
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{content.hex()}"
