"""What retention is about to take from readers: in `group describe`, and `ottla why retention`."""

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.moment import iso, span_words
from ottla.cli.output import show, show_one, show_title
from ottla.cli.places import place
from ottla.client.admin import Admin
from ottla.client.admin.decisions import DecisionRecord
from ottla.client.admin.retention import RetentionStanding
from ottla.client.errors import UnsupportedByBroker
from ottla.metadata.decisions import DecisionKind

NOTHING_KNOWN: Mapping[str, Any] = {
    "log_start": None,
    "deleted_unread": None,
    "time_left_ms": None,
    "loss": None,
}
_MINUTE_MS = 60_000
# Questions on their way.
_AT_ONCE = 50


async def times_left(
    admin: Admin, group_id: str, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Mapping[str, Any]]:
    """What of its partitions a group has lost, and when it loses the next; {} of Kafka's."""
    found: dict[TopicPartition, Mapping[str, Any]] = {}
    names = sorted(committed)
    for first in range(0, len(names), _AT_ONCE):
        part = names[first : first + _AT_ONCE]
        asked = (admin.logs.retention(name, [committed[name]], group_id=group_id) for name in part)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for name, answer in zip(part, answers, strict=True):
            if isinstance(answer, RetentionStanding):
                found[name] = _loss(answer, committed[name])
            elif isinstance(answer, UnsupportedByBroker):
                return {}
            elif not isinstance(answer, OttlaError):
                raise answer
            # Else a topic that is gone, or a partition without a leader.
    return found


def _loss(standing: RetentionStanding, offset: int) -> dict[str, Any]:
    deleted = max(0, standing.log_start_offset - offset)
    (left,) = standing.times_left
    words = []
    if deleted:
        words.append(f"{deleted} deleted unread")
    if left.left_ms is not None:
        words.append(in_words(left.left_ms))
    return {
        "log_start": standing.log_start_offset,
        "deleted_unread": deleted,
        "time_left_ms": left.left_ms,
        "loss": ", ".join(words) or None,
    }


def in_words(left_ms: int) -> str:
    """`now`, or `in 2 hours 5 minutes`: no finer than minutes once there are some."""
    if not left_ms:
        return "now"
    if left_ms >= _MINUTE_MS:
        left_ms -= left_ms % _MINUTE_MS
    return f"in {span_words(left_ms)}"


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@options.bootstrap
@options.output
def retention(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Tell when records of a partition are deleted, and for which readers that waits.

    \b
    ottla why retention flights-0
    ottla why retention flights-0 -o json

    Readers are those named in ottla.retention.hold.groups; what was deleted before one of them had
    read it is told as a decision.
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[RetentionStanding, list[DecisionRecord]]:
        first = await admin.logs.retention(name)
        offsets = [first.log_start_offset, *first.readers.values()]
        story = await admin.decisions.about(name)
        unread = [one for one in story.records if one.kind == DecisionKind.DELETED_UNREAD]
        # Each time is for whoever is waited for, where anybody is.
        reader = next(iter(first.readers), "")
        return await admin.logs.retention(name, offsets, group_id=reader), unread

    standing, unread = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", _answer(standing, unread))
        return
    show_title(f"{name}  offsets {standing.log_start_offset} to {standing.log_end_offset}")
    for line in _lines(standing):
        click.echo(line)
    rows = [_reader_row(standing, number) for number in range(len(standing.readers))]
    if rows:
        click.echo()
        show("table", rows, ["group", "committed", "unread", "loss"])
    for one in unread:
        click.secho(f"{iso(one.at_ms)}  {one.cause}: {one.evidence}", fg="red")


def _lines(standing: RetentionStanding) -> list[str]:
    """The settings, and what they mean for the oldest record."""
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


def _reader_row(standing: RetentionStanding, number: int) -> dict[str, Any]:
    group, committed = list(standing.readers.items())[number]
    left = standing.times_left[number + 1]
    position = max(committed, standing.log_start_offset)
    return {
        "group": group,
        "committed": None if committed < 0 else committed,
        "unread": standing.log_end_offset - position,
        "time_left_ms": left.left_ms,
        "loss": None if left.left_ms is None else in_words(left.left_ms),
    }


def _answer(standing: RetentionStanding, unread: list[DecisionRecord]) -> dict[str, Any]:
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
        "readers": [_reader_row(standing, number) for number in range(len(standing.readers))],
        "deleted_unread": [
            {"at": iso(one.at_ms), "cause": one.cause, "evidence": one.evidence} for one in unread
        ],
    }
