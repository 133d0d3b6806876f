"""Lists a topic's dead letters, and sends their records again, each once.

A redrive processes the letters in portions, with one transaction for each. It sends first the
records, then a mark for each letter to the dead letter topic. So a letter is marked if and only if
its record was sent, and after a crash the next redrive does not send the record twice.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.producer.producer import Producer
from ottla.record.codec import Header, Record
from ottla.record.dead_letters import (
    REDRIVEN_FROM,
    DeadLetter,
    mark_headers,
    own_headers,
    parse_letter,
    parse_mark,
)

# Letters per transaction.
_PORTION = 500
_POLL_MS = 1_000
_IDLE_POLLS = 60


@dataclass(frozen=True, slots=True)
class FoundLetter:
    """A dead letter, its place, and the part of its record that was copied."""

    # The topic of the letter, or a file of a table; then `offset` is the row in the file.
    source: str
    partition: int
    offset: int
    written_ms: int
    letter: DeadLetter
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    redriven: bool = False

    @property
    def place(self) -> str:
        """Return the letter's name, as in commands and headers."""
        return f"{self.source}-{self.partition}@{self.offset}"

    @property
    def is_bare(self) -> bool:
        """Whether the letter has no copy of its record, which must be read from its own topic."""
        return self.key is None and self.value is None


@dataclass(frozen=True, slots=True)
class Redriven:
    """The results of a redrive."""

    sent: int
    # Letters that were redriven before and are skipped.
    skipped: int
    # Letters without a copied key and value whose records no longer exist. Either they were not
    # copied, or both were null.
    gone: int


async def letters_of(admin: Admin, bootstrap: str, topic: str) -> list[FoundLetter]:
    """Return all letters of a topic, in order. Raises OttlaError."""
    letters: list[FoundLetter] = []
    marks: set[tuple[int, int]] = set()
    async for partition, record in _records(admin, bootstrap, topic):
        mark = parse_mark(record.headers) if record.value is None else None
        if mark is not None and parse_letter(record.headers) is None:
            marks.add(mark)
            continue
        letter = parse_letter(record.headers)
        if letter is not None:
            letters.append(
                FoundLetter(
                    topic,
                    partition,
                    record.offset,
                    record.timestamp,
                    letter,
                    record.key,
                    record.value,
                    tuple(own_headers(record.headers)),
                )
            )
    found = [replace(one, redriven=(one.partition, one.offset) in marks) for one in letters]
    return sorted(found, key=lambda one: (one.partition, one.offset))


async def redrive(
    admin: Admin,
    bootstrap: str,
    topic: str,
    chosen: Callable[[FoundLetter], bool],
    *,
    to: str | None = None,
    again: bool = False,
) -> Redriven:
    """Send the records of the chosen letters to their own topics and partitions, or to `to`.

    If several redrives of a topic run at once, the last to start fences the others. Letters
    that were redriven before are skipped unless `again`. Raises OttlaError.
    """
    async with Producer(
        bootstrap, transactional_id=f"ottla-redrive-{topic}", client_id="ottla-redrive"
    ) as producer:
        # Fence other redrives before reading letters, so that they cannot write marks afterwards.
        await producer.init_transactions()
        letters = [one for one in await letters_of(admin, bootstrap, topic) if chosen(one)]
        due = [one for one in letters if again or not one.redriven]
        complete = await with_content(admin, bootstrap, due)
        for start in range(0, len(complete), _PORTION):
            async with producer.transaction():
                for one in complete[start : start + _PORTION]:
                    await send_again(producer, one, to)
                    await producer.send(
                        topic,
                        None,
                        partition=one.partition,
                        headers=mark_headers(one.partition, one.offset),
                    )
        return Redriven(len(complete), len(letters) - len(due), len(due) - len(complete))


async def send_again(producer: Producer, one: FoundLetter, to: str | None) -> None:
    """Send a letter's record within the open transaction."""
    await producer.send(
        to or one.letter.topic,
        one.value,
        one.key,
        # In the same partition as before, so that records of one key stay in order.
        partition=None if to else one.letter.partition,
        headers=[*one.headers, (REDRIVEN_FROM, one.place.encode())],
    )


async def with_content(
    admin: Admin, bootstrap: str, letters: Sequence[FoundLetter]
) -> list[FoundLetter]:
    """Add the content of their records to the letters; drop letters whose records are gone."""
    wanted: dict[TopicPartition, set[int]] = {}
    for one in letters:
        if one.is_bare:
            place = TopicPartition(one.letter.topic, one.letter.partition)
            wanted.setdefault(place, set()).add(one.letter.offset)
    found: dict[tuple[TopicPartition, int], Record] = {}
    for place, offsets in wanted.items():
        span = (min(offsets), max(offsets) + 1)
        async for _, record in _records(admin, bootstrap, place.topic, place.partition, span):
            if record.offset in offsets:
                found[place, record.offset] = record
    complete = []
    for one in letters:
        if one.is_bare:
            place = TopicPartition(one.letter.topic, one.letter.partition)
            content = found.get((place, one.letter.offset))
            if content is None:
                continue
            headers = tuple(content.headers)
            one = replace(one, key=content.key, value=content.value, headers=headers)
        complete.append(one)
    return complete


async def _records(
    admin: Admin,
    bootstrap: str,
    topic: str,
    partition: int | None = None,
    span: tuple[int, int] | None = None,
) -> AsyncIterator[tuple[int, Record]]:
    """Yield committed records of a topic up to its present end, or of a span of one partition."""
    described = (await admin.topics.describe_all([topic]))[0]
    numbers = [one.partition for one in described.partitions]
    places = [TopicPartition(topic, n) for n in numbers if partition is None or n == partition]
    if partition is not None and not places:
        return
    async with Consumer(
        bootstrap, isolation_level="read_committed", client_id="ottla-dlq"
    ) as consumer:
        await consumer.assign(places)
        starts = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        if span is not None:
            (place,) = places
            starts[place] = max(starts[place], span[0])
            ends[place] = min(ends[place], span[1])
        open_places = {place for place in places if starts[place] < ends[place]}
        for place in places:
            consumer.seek(place, starts[place])
        async for found in _polled(consumer, open_places, ends):
            yield found


async def _polled(
    consumer: Consumer, open_places: set[TopicPartition], ends: dict[TopicPartition, int]
) -> AsyncIterator[tuple[int, Record]]:
    idle = 0
    while open_places:
        if idle >= _IDLE_POLLS:
            # The records not read may be marks. Without a mark, a letter is sent twice.
            raise OttlaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{min(open_places)} gave no record for {_IDLE_POLLS} s before its end; try again",
            )
        polled = (await consumer.poll(_POLL_MS / 1000)).by_partition
        idle = 0 if polled else idle + 1
        for records in polled:
            end = ends[TopicPartition(records.topic, records.partition)]
            for record in records:
                if record.offset < end:
                    yield records.partition, record
        # The position also advances past transaction markers.
        open_places -= {one for one in open_places if await consumer.position(one) >= ends[one]}
