"""The records of a topic: by offset and time, searched, one by one, and live."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response, StreamingResponse

from ottla.base.clock import local_now
from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.ids import TopicPartition
from ottla.client import Consumer
from ottla.client.connection.cluster import connections_of
from ottla.console.shown import FORMS, ShownRecord, keeper
from ottla.console.templates import rendered
from ottla.console.visit import PART_S, Visit, address, get, part, problem_of, whole
from ottla.diagnosis.partitions import Offsets, offsets_in_time, partitions_of
from ottla.diagnosis.record_choice import condition_of, position_of
from ottla.diagnosis.records import KeptRecord, ReadLimits, RecordPage, RecordReader, bounds
from ottla.record.codec import Record

ROWS = 50
# Of a fetch: a broker sends a larger record whole all the same, one at a time.
_FETCH_BYTES, _PARTITION_BYTES = 8 << 20, 1 << 20
_BROKER_S = 2.0
_LIVE_POLL_S = 1.0
_LIVE_ROWS = 100


@dataclass(frozen=True, slots=True)
class Search:
    """What a visitor looks for, as in the address. `place` is where to start, in the CLI's words.

    `older` and `newer` are offsets of an earlier page to go on from.
    """

    topic: str
    partition: str
    place: str
    where: str
    form: str
    older: str
    newer: str

    def link(self, **changes: object) -> str:
        """Return the address of this search with changes."""
        given = {"partition": self.partition, "from": self.place, "where": self.where}
        form = "" if self.form == FORMS[0] else self.form
        return address("/topics/{}/records", self.topic, **{**given, "show": form, **changes})


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """A page of records, with links to the pages around it and the partitions without answer."""

    page: RecordPage[ShownRecord]
    newest_first: bool
    older_link: str
    newer_link: str
    silent: tuple[str, ...]


def _search(visit: Visit) -> Search:
    form = visit.query("show", FORMS[0])
    return Search(
        visit.name(),
        visit.query("partition"),
        visit.query("from"),
        visit.query("where"),
        form if form in FORMS else FORMS[0],
        visit.query("older"),
        visit.query("newer"),
    )


def _keep(
    visit: Visit, search: Search, *, whole: bool = False
) -> Callable[[TopicPartition, Record], ShownRecord | None]:
    rules = visit.console.masks.of(search.topic)
    return keeper(rules, condition_of(search.where), search.form, whole=whole)


async def show_records(visit: Visit) -> Response:
    """Show a page of records: the newest first, unless the address says where to start."""
    search = _search(visit)
    found = await part(_find(visit, search), 2 * PART_S)
    live = address(
        "/topics/{}/live",
        search.topic,
        partition=search.partition,
        where=search.where,
        show=search.form,
    )
    return visit.page(
        "records.html", name=search.topic, search=search, found=found, forms=FORMS, live=live
    )


async def _find(visit: Visit, search: Search) -> FoundRecords:
    keep = _keep(visit, search)
    async with visit.console.reads:
        names = await _partitions(visit, search)
        cluster = connections_of(visit.admin)
        starts, ends, failed = await bounds(cluster, names, _BROKER_S)
        if failed and not ends:
            raise next(iter(failed.values()))
        async with visit.consumer(
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=max(1, min(_PARTITION_BYTES, 4 * _FETCH_BYTES // len(names))),
        ) as consumer:
            reader = RecordReader(consumer, keep, starts, ends, ReadLimits(ROWS))
            newest_first, page = await _page(visit, search, reader, starts, ends)
    silent = [f"{name}: {error.message.partition('; ')[0]}" for name, error in failed.items()]
    silent += [f"{name}: its leader sent no records in time" for name in page.unread]
    older = search.link(older=_packed(page.older)) if page.has_older else ""
    newer = search.link(newer=_packed(page.newer)) if page.has_newer else ""
    return FoundRecords(page, newest_first, older, newer, tuple(silent))


async def _page(
    visit: Visit,
    search: Search,
    reader: RecordReader[ShownRecord],
    starts: Offsets,
    ends: Offsets,
) -> tuple[bool, RecordPage[ShownRecord]]:
    """Return whether the newest records come first, and the page."""
    if search.older:
        return True, await reader.backward(_unpacked(search.topic, search.older))
    if search.newer:
        return False, await reader.onward(_unpacked(search.topic, search.newer))
    if not search.place or search.place in ("latest", "end"):
        return True, await reader.backward(ends)
    position = position_of(search.place, local_now())
    if position.kind == "time":
        cluster = connections_of(visit.admin)
        at, _ = await offsets_in_time(cluster, ends, position.number, _BROKER_S)
        return False, await reader.onward(
            {name: offset if offset >= 0 else ends[name] for name, offset in at.items()}
        )
    if position.kind == "last":
        return False, await reader.onward(
            {name: max(starts[name], end - position.number) for name, end in ends.items()}
        )
    return False, await reader.onward(dict.fromkeys(ends, position.number))


async def _partitions(visit: Visit, search: Search) -> list[TopicPartition]:
    chosen = [whole(search.partition, "the partition", 0, 1 << 31)] if search.partition else []
    await visit.admin.topics.describe(search.topic)
    return await partitions_of(connections_of(visit.admin), search.topic, chosen)


def _packed(offsets: Mapping[TopicPartition, int]) -> str:
    return ",".join(f"{name.partition}:{offset}" for name, offset in sorted(offsets.items()))


def _unpacked(topic: str, text: str) -> Offsets:
    found: Offsets = {}
    for pair in text.split(","):
        partition, colon, offset = pair.partition(":")
        if not colon:
            raise WrongWords("the offsets in the address cannot be read; begin at the topic")
        name = TopicPartition(topic, whole(partition, "a partition in the address", 0, 1 << 31))
        found[name] = whole(offset, "an offset in the address", 0)
    return found


async def show_record(visit: Visit) -> Response:
    """Show one record as far as it fits into a page."""
    search = _search(visit)
    partition = whole(visit.name("partition"), "the partition", 0, 1 << 31)
    offset = whole(visit.name("offset"), "the offset", 0)
    name = TopicPartition(search.topic, partition)
    found = await part(_one(visit, search, name, offset))
    return visit.page(
        "record.html", name=search.topic, place=name, offset=offset, search=search, found=found,
        forms=FORMS,
    )  # fmt: skip


async def _one(
    visit: Visit, search: Search, name: TopicPartition, offset: int
) -> KeptRecord[ShownRecord]:
    """Return a record. Raises OffsetOutOfRange if there is none at this offset."""
    async with visit.console.reads:
        await visit.admin.topics.describe(name.topic)
        starts, ends, failed = await bounds(connections_of(visit.admin), [name], _BROKER_S)
        if failed:
            raise failed[name]
        async with visit.consumer(fetch_max_bytes=1, max_partition_fetch_bytes=1) as consumer:
            keep = _keep(visit, search, whole=True)
            reader = RecordReader(consumer, keep, starts, ends, ReadLimits(1))
            page = await reader.onward({name: offset})
    if page.unread:
        raise OttlaError(
            ErrorCode.REQUEST_TIMED_OUT, f"the leader of {name} sent no record in time"
        )
    if not page.records or page.records[0].offset != offset:
        later = f"; the next record is at offset {page.records[0].offset}" if page.records else ""
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"there is no record at offset {offset} of {name}, which has offsets {starts[name]} to "
            f"{ends[name]}: it was deleted or compacted, marks a transaction, or is to come{later}",
        )
    return page.records[0]


async def stream(visit: Visit) -> Response:
    """Send new records as events: `rows` has rows of the table, `problem` says what is wrong."""
    search = _search(visit)
    keep = _keep(visit, search)
    if visit.console.live.locked():
        raise WrongWords("too many live pages are open already; close one that is not needed")
    names = await _partitions(visit, search)
    return StreamingResponse(
        _events(visit, search, names, keep),
        HTTPStatus.OK,
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _events(
    visit: Visit,
    search: Search,
    names: list[TopicPartition],
    keep: Callable[[TopicPartition, Record], ShownRecord | None],
) -> AsyncIterator[str]:
    size = max(1, min(_PARTITION_BYTES, 4 * _FETCH_BYTES // len(names)))
    options = {"fetch_max_bytes": _FETCH_BYTES, "max_partition_fetch_bytes": size}
    try:
        async with visit.console.live, visit.consumer(**options) as consumer:
            await consumer.assign(names)
            consumer.seek_to_end()
            yield _event("open", "")
            while visit.session.is_ready:
                yield await _next_rows(search, consumer, keep)
            yield _event("problem", "the session has ended; log in again")
    except OttlaError as error:
        problem = problem_of(error)
        yield _event("problem", f"{problem.sentence}. {problem.remedy}".strip())


async def _next_rows(
    search: Search,
    consumer: Consumer,
    keep: Callable[[TopicPartition, Record], ShownRecord | None],
) -> str:
    """Return an event with the records of the next second; a comment if there are none."""
    rows: list[KeptRecord[ShownRecord]] = []
    left_out = 0
    for batch in (await consumer.poll(_LIVE_POLL_S, 10 * _LIVE_ROWS)).by_partition:
        name = TopicPartition(batch.topic, batch.partition)
        for record in batch.records:
            content = keep(name, record)
            if content is None:
                continue
            if len(rows) == _LIVE_ROWS:
                left_out += 1
                continue
            rows.append(KeptRecord(name, record.offset, record.timestamp, content))
    if not rows:
        return ": no records\n\n"
    html = rendered("record_rows.html", rows=rows[::-1], search=search, now=local_now())
    return _event("rows", json.dumps({"html": html, "left_out": left_out}))


def _event(kind: str, text: str) -> str:
    data = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {kind}\n{data}\n"


ROUTES = (
    get("/topics/{name}/records", show_records),
    get("/topics/{name}/records/{partition}/{offset}", show_record),
    get("/topics/{name}/live", stream),
)
