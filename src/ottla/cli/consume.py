"""`ottla consume`: the records of a topic, as text, JSON or in a format of one's own."""

import asyncio
import re
import sys
from dataclasses import dataclass

import click

from ottla.base.ids import TopicPartition
from ottla.cli import options, shape
from ottla.cli.connect import reach, run
from ottla.cli.span import Offsets, offsets_at, partitions_of, resolved
from ottla.cli.words import Position, ago, moment, position
from ottla.client import Consumer, ConsumerOptions, Records
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.offsets import LATEST

# Records asked for at once: enough for speed, few enough to show them soon.
_POLL_RECORDS = 10_000
_POLL_MS = 200

_FORMAT_HELP = (
    "Show each record as TEXT says: %k key, %v or %s value, %h headers, %t topic, %p partition, "
    "%o offset, %T timestamp (ms), %K and %S lengths of key and value, %% a percent sign; \\n, "
    "\\t and \\xNN as in C."
)


@click.command()
@click.argument("topic")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes; ctrl-C ends.")
@click.option(
    "--from",
    "start",
    type=position,
    metavar="PLACE",
    help="earliest (default), latest, an offset, -N (the last N of each partition) or a time.",
)
@click.option("--since", type=ago, metavar="SPAN", help="From so long ago: 30s, 10m, 2h, 1d.")
@click.option("--until", type=moment, metavar="TIME", help="End before records of this time.")
@click.option("-n", "--count", type=click.IntRange(1), help="End after so many records.")
@click.option(
    "--partition", "-p", "chosen", multiple=True, type=click.IntRange(0), help="Only this one."
)
@click.option("--group", "-g", help="As a member of this group, from where it stands; commits.")
@click.option("--grep", metavar="PATTERN", help="Only records whose key or value matches.")
@click.option("--keys", "-k", is_flag=True, help="The key and a tab before each value.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, as -o json.")
@click.option("--pretty", is_flag=True, help="JSON indented, and coloured on a terminal.")
@click.option("--format", "template", metavar="TEXT", help=_FORMAT_HELP)
@click.option("--output", "-o", "form", type=click.Choice(["text", "json"]), default="text")
@options.bootstrap
def consume(
    topic: str,
    follow: bool,
    start: Position | None,
    since: int | None,
    until: int | None,
    count: int | None,
    chosen: tuple[int, ...],
    group: str | None,
    grep: str | None,
    keys: bool,
    as_json: bool,
    pretty: bool,
    template: str | None,
    form: str,
    bootstrap: str,
) -> None:
    """Show the records of TOPIC: their values, a line each. Ends at the end of the log.

    \b
    ottla consume flights                          all there is
    ottla consume flights -f --from -10            the last ten, and what comes
    ottla consume flights --since 10m --pretty     of the last ten minutes
    ottla consume flights --from 2024-01-31T09:00 --until 2024-01-31T10:00
    ottla consume flights -n 3 --json              three, with all that belongs to them
    ottla consume flights --format '%p/%o %k: %v\\n'
    ottla consume flights --group audit -f         as a member of a group

    Without a time zone, times are those of this machine. Nothing is committed without --group.
    """  # noqa: D301
    if follow and until is not None:
        raise click.UsageError("--follow never ends and --until does; give one")
    wish = _Wish(
        topic=topic,
        follow=follow,
        start=_start(start, since, group, chosen),
        until=until,
        count=count,
        chosen=chosen,
        group=group,
        pattern=_pattern(grep),
        show=_shape(keys=keys, as_json=as_json or form == "json", pretty=pretty, template=template),
    )
    run(_consume(bootstrap, wish))


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be read, and how it is to be shown."""

    topic: str
    follow: bool
    start: Position
    until: int | None
    count: int | None
    chosen: tuple[int, ...]
    group: str | None
    pattern: re.Pattern[bytes] | None
    show: shape.Shape


def _start(
    start: Position | None, since: int | None, group: str | None, chosen: tuple[int, ...]
) -> Position:
    if start is not None and since is not None:
        raise click.UsageError("--from and --since both say where to start; give one")
    if since is not None:
        start = Position("time", since)
    if start is None:
        start = Position("earliest")
    if group and (chosen or start.kind not in ("earliest", "latest")):
        raise click.UsageError(
            "a group says itself which partitions and where from; `ottla group reset` moves it "
            "(--from earliest and latest say where a new group starts)"
        )
    return start


def _shape(*, keys: bool, as_json: bool, pretty: bool, template: str | None) -> shape.Shape:
    if template is not None:
        if as_json or pretty or keys:
            raise click.UsageError("--format says all; leave out --json, --pretty and --keys")
        return shape.format_string(template)
    is_terminal = sys.stdout.isatty()
    if pretty:
        return shape.pretty(keys=keys, whole=as_json, is_terminal=is_terminal)
    return shape.json_lines if as_json else shape.values(keys=keys, is_terminal=is_terminal)


def _pattern(text: str | None) -> re.Pattern[bytes] | None:
    if text is None:
        return None
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise click.BadParameter(f"{text!r}: {error}", param_hint="--grep") from None


async def _consume(bootstrap: str, wish: _Wish) -> None:
    settings = ConsumerOptions(
        group_id=wish.group,
        enable_auto_commit=False,
        auto_offset_reset=wish.start.kind if wish.group else "earliest",
        client_id="ottla-cli",
    )
    assigned = asyncio.Event()
    async with Consumer(bootstrap, settings, on_assigned=lambda _: assigned.set()) as consumer:
        await reach(consumer.cluster)
        partitions = await partitions_of(consumer.cluster, wish.topic, wish.chosen)
        ends = None if wish.follow else await _ends(consumer, partitions, wish)
        if wish.group is None:
            starts = await resolved(consumer.cluster, partitions, wish.start)
            await _say_if_beyond(consumer.cluster, starts, wish)
            await consumer.assign(partitions)
            for place, offset in starts.items():
                consumer.seek(place, offset)
            assigned.set()
        else:
            consumer.subscribe(wish.topic)
        await _Reader(consumer, wish, ends, assigned).read()


async def _say_if_beyond(cluster: Cluster, starts: Offsets, wish: _Wish) -> None:
    """Say where the log ends, if nothing is there at the place asked for."""
    if wish.start.kind not in ("offset", "time"):
        return
    ends = await offsets_at(cluster, starts, LATEST)
    asked = wish.start.number
    is_offset = wish.start.kind == "offset"
    empty = {
        place: end for place, end in ends.items() if (asked if is_offset else starts[place]) >= end
    }
    # Of some partitions a time finds nothing as a rule; an offset names one record of each.
    if not empty or (not is_offset and len(empty) < len(ends)):
        return
    where = ", ".join(f"{place} ends at offset {end}" for place, end in sorted(empty.items()))
    what = f"from offset {asked} on" if is_offset else "of that time or later"
    later = "; what comes is shown" if wish.follow else ""
    click.echo(f"there is no record {what} yet: {where}{later}", err=True)


async def _ends(consumer: Consumer, partitions: list[TopicPartition], wish: _Wish) -> Offsets:
    """Where to end: the end of the log as it is now, or the first record of a time."""
    ends = await offsets_at(consumer.cluster, partitions, LATEST)
    if wish.until is not None:
        found = await offsets_at(consumer.cluster, partitions, wish.until)
        for place, offset in found.items():
            if offset >= 0:
                ends[place] = min(ends[place], offset)
    return ends


class _Reader:
    """Shows records until enough is shown."""

    def __init__(
        self, consumer: Consumer, wish: _Wish, ends: Offsets | None, assigned: asyncio.Event
    ) -> None:
        self._consumer = consumer
        # Set once it is known which partitions are read.
        self._assigned = assigned
        self._wish = wish
        self._ends = ends
        self._shown = 0

    async def read(self) -> None:
        """Show records up to the count or the end, or for ever; commit what was shown."""
        while not await self._is_done():
            found = await self._consumer.poll(_POLL_MS, self._limit())
            for records in found:
                self._show(records)
            sys.stdout.flush()
            if self._wish.group and found:
                await self._commit(found)

    async def _commit(self, found: list[Records]) -> None:
        """Commit positions, but nothing beyond the end, for that was not shown."""
        positions: Offsets = {}
        for records in found:
            place = TopicPartition(records.topic, records.partition)
            reached = await self._consumer.position(place)
            ends = self._ends or {}
            positions[place] = min(reached, ends.get(place, reached))
        await self._consumer.commit(positions)

    def _limit(self) -> int:
        wish = self._wish
        if wish.count is None:
            return _POLL_RECORDS
        if wish.pattern is not None and not wish.group:
            # Nobody knows how many it takes.
            return _POLL_RECORDS
        # A group commits all that is polled, so no more than is shown.
        return min(wish.count - self._shown, _POLL_RECORDS)

    async def _is_done(self) -> bool:
        if self._wish.count is not None and self._shown >= self._wish.count:
            return True
        if self._ends is None or not self._assigned.is_set():
            return False
        for place in self._consumer.assignment:
            if await self._consumer.position(place) < self._ends.get(place, 0):
                return False
        return True

    def _show(self, found: Records) -> None:
        place = TopicPartition(found.topic, found.partition)
        end = None if self._ends is None else self._ends.get(place)
        wish = self._wish
        out: list[bytes] = []
        for record in found.records:
            if end is not None and record.offset >= end:
                break
            if wish.count is not None and self._shown >= wish.count:
                break
            if wish.pattern is not None and not (
                wish.pattern.search(record.value or b"") or wish.pattern.search(record.key or b"")
            ):
                continue
            out.append(wish.show(place, record))
            self._shown += 1
        sys.stdout.buffer.write(b"".join(out))
