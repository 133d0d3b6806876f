"""`ottla why retention`: when records are deleted, and which readers delay that."""

from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso, span_words
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.places import place
from ottla.client.admin.retention import RetentionStanding
from ottla.diagnosis.retention import ReaderStanding, RetentionDiagnosis, in_words, retention_of


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@options.bootstrap
@options.output
def retention(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Show when records are deleted, and what that waits for.

    \b
    ottla why retention flights-0
    ottla why retention flights-0 -o json

    Readers are those named in ottla.retention.hold.groups; what was deleted before one of them had
    read it is shown as a decision.
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: retention_of(admin, name))
    standing = found.standing
    if form == "json":
        show_one("json", _answer(found))
        return
    show_title(f"{name}  offsets {standing.log_start_offset} to {standing.log_end_offset}")
    for line in _lines(standing):
        click.echo(line)
    rows = [_reader_row(reader) for reader in found.readers]
    if rows:
        click.echo()
        show("table", rows, ["group", "committed", "unread", "loss"])
    for one in found.deleted_unread:
        click.secho(f"{iso(one.at_ms)}  {one.cause}: {one.evidence}", fg="red")


def _lines(standing: RetentionStanding) -> list[str]:
    """The settings, and their effect on the oldest record."""
    oldest = standing.times_left[0]
    lines = [
        f"cleanup.policy={standing.cleanup_policy}  retention.ms={standing.retention_ms}  "
        f"retention.bytes={standing.retention_bytes}",
        f"{standing.size_bytes:,} bytes, growing by {standing.bytes_per_second:,.0f} a second",
    ]
    if oldest.left_ms is None:
        lines.append("nothing deletes its records as the settings are")
    else:
        lines.append(f"the oldest record may go {in_words(oldest.left_ms)}, by {oldest.setting}")
    if standing.readers:
        lines.append(
            f"waits for readers: up to {standing.hold_max_bytes:,} bytes "
            f"(ottla.retention.hold.max.bytes) and {span_words(standing.hold_max_ms)} "
            "(ottla.retention.hold.max.ms) more"
        )
    if standing.held_bytes:
        lines.append(
            f"{standing.held_bytes:,} bytes are kept for them alone, "
            f"since {iso(standing.held_since_ms)}"
        )
    return lines


def _reader_row(reader: ReaderStanding) -> dict[str, Any]:
    return {
        "group": reader.group_id,
        "committed": reader.committed,
        "unread": reader.unread,
        "time_left_ms": reader.time_left_ms,
        "loss": None if reader.time_left_ms is None else in_words(reader.time_left_ms),
    }


def _answer(found: RetentionDiagnosis) -> dict[str, Any]:
    standing = found.standing
    oldest = standing.times_left[0]
    return {
        "partition": str(standing.name),
        "leader": standing.broker_id,
        "log_start_offset": standing.log_start_offset,
        "log_end_offset": standing.log_end_offset,
        "size_bytes": standing.size_bytes,
        "bytes_per_second": standing.bytes_per_second,
        "cleanup_policy": standing.cleanup_policy,
        "retention_ms": standing.retention_ms,
        "retention_bytes": standing.retention_bytes,
        "hold_max_bytes": standing.hold_max_bytes,
        "hold_max_ms": standing.hold_max_ms,
        "oldest_left_ms": oldest.left_ms,
        "setting": oldest.setting,
        "held_bytes": standing.held_bytes,
        "held_since_ms": standing.held_since_ms,
        "readers": [_reader_row(reader) for reader in found.readers],
        "deleted_unread": [
            {"at": iso(one.at_ms), "cause": one.cause, "evidence": one.evidence}
            for one in found.deleted_unread
        ],
    }
