"""Commits one portion of a series and the series' mark in one transaction, at most once.

    take over the transactional id → read the mark → send → add the mark → commit

The last process to take over the id continues. An earlier process can no longer commit, and its
open transaction is aborted, or completed if it was decided. Only then the mark is read. So if
several processes write the same portion, one of them commits it and the others skip it or fail.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.base.ids import TopicPartition
from ottla.client import OffsetAndMetadata, PreparedBatch, sync
from ottla.lake.edges.marks import PortionMark, PortionState, as_offset, newest, standing
from ottla.lake.source.access import ClientAccess

# The topic of the mark if no record has named one. It exists, because marks are offsets.
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
    """Write portion `number`, unless it is committed already; return whether it was written now.

    The mark is stored under `mark_topic`, an existing topic, or else under the first topic written
    to, or else under the cluster's own topic of offsets. A portion that is not `marked` has none.
    Raises OttlaError; then nothing of the portion is visible, unless the error says that the
    outcome is unknown. In that case the next call finds out.
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
    """Return the partition of the mark: always the same one, so that there is only one mark."""
    if places:
        return max(places, key=lambda place: places[place].offset)
    return TopicPartition(topic, 0)
