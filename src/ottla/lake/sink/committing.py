"""One portion of a series in one transaction, with the series' mark: all of it once, or nothing.

    take over the transactional id → read the mark → send → add the mark → commit

The process that takes over the id last goes on: an earlier one can commit nothing any more, and
what it had open is aborted or, where it was decided, complete. Only then the mark is read. So of
any number of processes that write the same portion one commits it, and the others skip it or fail.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.base.ids import TopicPartition
from ottla.client import OffsetAndMetadata, PreparedBatch, sync
from ottla.lake.access import ClientAccess
from ottla.lake.sink.marks import PortionMark, PortionState, as_offset, newest, standing

# Where a mark stands before any record has named a topic. It is there since marks are offsets.
_OFFSETS_TOPIC = "__consumer_offsets"

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Series:
    """Numbered portions under one name, which is the transactional id and the mark's group."""

    bootstrap: str
    name: str
    transaction_timeout_ms: int = 60_000
    first: int | None = None
    access: ClientAccess = field(default_factory=ClientAccess)


def commit_portion(
    series: Series,
    number: int,
    batches: Iterable[PreparedBatch],
    mark_topic: str | None,
    on_step: OnStep,
    *,
    marked: bool = True,
) -> bool:
    """Write portion `number`, unless it is committed already; whether it was written now.

    `mark_topic`, a topic that exists, holds the mark, else the first one written to, else the
    cluster's own topic of offsets. A portion that is not `marked` has none. Raises OttlaError; then
    nothing of the portion is visible, unless the error says that the outcome is not known: the next
    call finds out.
    """
    with sync.Producer(
        series.bootstrap,
        client_id="ottla-sink",
        transactional_id=series.name,
        transaction_timeout_ms=series.transaction_timeout_ms,
        allow_auto_create_topics=False,
        config=series.access.client_config(),
    ) as producer:
        producer.init_transactions()
        on_step("id taken over")
        places = _marks(series)
        mark = newest(places.values())
        if standing(mark, number, series.first, series.name) is PortionState.COMMITTED:
            on_step("skipped")
            return False
        on_step("mark read")
        with producer.transaction():
            records = 0
            for batch in batches:
                producer.send_prepared(batch)
                records += batch.record_count
                mark_topic = mark_topic or batch.topic
            producer.flush()
            on_step("records sent")
            if marked:
                followed = mark.first if mark and series.first is None else series.first
                next_mark = PortionMark(number, records, followed)
                where = _mark_place(places, mark_topic or _OFFSETS_TOPIC)
                producer.send_offsets({where: as_offset(next_mark)}, series.name)
            on_step("mark added")
        on_step("committed")
    return True


def _marks(series: Series) -> dict[TopicPartition, OffsetAndMetadata]:
    with sync.Admin(series.bootstrap, config=series.access.client_config()) as admin:
        return admin.groups.offsets(series.name)


def _mark_place(places: dict[TopicPartition, OffsetAndMetadata], topic: str) -> TopicPartition:
    """Where the mark stands: always in one place, so that there is one mark only."""
    if places:
        return max(places, key=lambda place: places[place].offset)
    return TopicPartition(topic, 0)
