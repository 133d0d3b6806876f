"""Commits one portion of a series, such as an epoch, in one transaction, at most once.

    initialize the transactional id → read the mark → send → add the mark → commit

The last process that initializes the id continues. Earlier processes are fenced, and an open
transaction is aborted, or completed if it was prepared. Only then is the mark read. So if several
processes write the same portion, one of them commits it, and the others skip it or fail.

The mark is the number of the last committed portion. It is a committed offset with metadata, in a
group that has the series' name, and is committed in the portion's transaction. So a portion that is
sent again after a crash is recognised.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import OffsetAndMetadata, PreparedBatch, sync
from ottla.lake.source.access import ClientAccess

# The topic of the mark if the portion has no record. It always exists if marks are stored.
_OFFSETS_TOPIC = "__consumer_offsets"
_KIND = "ottla sink"
# The prefix of a series' name. The id of a query or a batch write follows.
SERIES_OF_QUERY = "ottla-sink."

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Series:
    """A series of numbered portions, which are committed in order.

    `name` is the transactional id, and the consumer group whose committed offset is the mark.
    """

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
    """Write portion `number` unless it is committed already; return whether it was written now.

    A new mark is committed for `mark_topic`, which must exist. The default is the topic of the
    first batch, or `__consumer_offsets` if there is no batch. A portion that is not `marked` has no
    mark. Raises OttlaError; then nothing of the portion is visible, unless the error says that the
    outcome is unknown. In that case the next call finds the outcome.
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
        if is_committed(mark, number, series.first, series.name):
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
                producer.send_offsets_to_transaction({where: as_offset(next_mark)}, series.name)
            on_step("mark added")
        on_step("committed")
    return True


def _marks(series: Series) -> dict[TopicPartition, OffsetAndMetadata]:
    with sync.Admin(series.bootstrap, config=series.access.client_config()) as admin:
        return admin.groups.offsets(series.name)


def _mark_place(places: dict[TopicPartition, OffsetAndMetadata], topic: str) -> TopicPartition:
    """Return the partition of the newest mark, or partition 0 of `topic` if there is no mark."""
    if places:
        return max(places, key=lambda place: places[place].offset)
    return TopicPartition(topic, 0)


@dataclass(frozen=True, slots=True)
class PortionMark:
    """The mark of a series: portion `number`, with `records` records, is committed.

    `first` is the value of the option `firstEpoch` that the series has applied already.
    """

    number: int
    records: int
    first: int | None = None


def as_offset(mark: PortionMark) -> OffsetAndMetadata:
    """Return the mark as a committed offset, which is the number of the next portion."""
    content = {"kind": _KIND, "number": mark.number, "records": mark.records}
    if mark.first is not None:
        content["first"] = mark.first
    return OffsetAndMetadata(mark.number + 1, json.dumps(content))


def newest(committed: Iterable[OffsetAndMetadata]) -> PortionMark | None:
    """Return the newest mark among a group's offsets. Raises OttlaError for other offsets."""
    marks = [_from_offset(offset) for offset in committed]
    return max(marks, key=lambda mark: mark.number, default=None)


def _from_offset(offset: OffsetAndMetadata) -> PortionMark:
    try:
        found = json.loads(offset.metadata)
        if found["kind"] == _KIND and found["number"] == offset.offset - 1:
            return PortionMark(int(found["number"]), int(found["records"]), found.get("first"))
    except (ValueError, KeyError, TypeError):
        pass
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"a group of the sink's has the committed offset {offset.offset} with the metadata "
        f"{offset.metadata!r}, which the sink did not write. Delete the group's offsets where they "
        "were set by mistake (`ottla group reset` shows them), and name the epoch to go on with "
        'by .option("firstEpoch", "QUERY:N")',
    )


def is_committed(mark: PortionMark | None, number: int, first: int | None, series: str) -> bool:
    """Return True if portion `number` is committed already, False if it is the next to write.

    Spark plans an epoch only after the previous epoch is committed, so a portion must be the marked
    portion or the next. Raises OttlaError for any other portion, because a part of the series would
    be missing or doubled. Portion `first` needs no mark before it. `first` is ignored if the mark
    says that it was applied already.
    """
    if mark is not None and mark.number == number:
        return True
    if first is not None and number <= first and (mark is None or mark.first != first):
        return number != first
    if number == (0 if mark is None else mark.number + 1):
        return False
    if mark is None:
        found = (
            f"no mark of {series} is there. The brokers forget it offsets.retention.minutes after "
            "the last epoch, or this checkpoint was begun with another sink"
        )
    elif mark.number > number:
        found = (
            f"the mark of {series} is already at epoch {mark.number}: the checkpoint is an old copy"
        )
    else:
        found = (
            f"the mark of {series} is at epoch {mark.number}: epochs after it were not written here"
        )
    query = series.removeprefix(SERIES_OF_QUERY)
    raise OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"epoch {number} was not written, since it is not known whether the topic has it: {found}. "
        "Look at the topic's newest records, then name the first epoch that the topic does not "
        f'have: .option("firstEpoch", "{query}:{number}"), or "{query}:{number + 1}" to leave this '
        "one out",
    )
