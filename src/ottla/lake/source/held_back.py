"""Reports open transactions that hold back the last stable offset of partitions."""

from collections.abc import Mapping, Sequence

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso, span_words
from ottla.client.admin.transactions import OpenTransaction
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.source.cluster import Cluster, LogPosition, TopicBounds
from ottla.lake.source.stream_offset import Key

# A partition is looked into if its last stable offset has not moved for PATIENCE_MS, and at most
# once in INTERVAL_MS.
PATIENCE_MS = 10_000
INTERVAL_MS = 60_000


class StandingEnds:
    """Tracks the partitions whose last stable offset does not move. Pure."""

    def __init__(self) -> None:
        self._since: dict[Key, tuple[int, int]] = {}
        self._asked_ms = -INTERVAL_MS

    def to_ask(self, now_ms: int, ends: Mapping[Key, LogPosition]) -> list[Key]:
        """Return the partitions to look into now, whose end has not moved for PATIENCE_MS."""
        self._since = {
            key: (end.offset, self._since[key][1])
            if key in self._since and self._since[key][0] == end.offset
            else (end.offset, now_ms)
            for key, end in ends.items()
        }
        if now_ms - self._asked_ms < INTERVAL_MS:
            return []
        standing = [k for k, (_, since) in self._since.items() if now_ms - since >= PATIENCE_MS]
        if standing:
            self._asked_ms = now_ms
        return standing


def held_back(
    cluster: Cluster,
    bootstrap: Bootstrap,
    keys: Sequence[Key],
    ends: Mapping[Key, LogPosition],
) -> list[str]:
    """Return a line of text for each partition whose last stable offset is held back.

    That is one whose high watermark is above its end in `ends`.
    """
    waiting: dict[Key, int] = {}
    for topic in sorted({key.topic for key in keys}):
        marks = cluster.high_watermarks(topic)
        for key in keys:
            if key.topic == topic and marks.get(key.partition, 0) > ends[key].offset:
                waiting[key] = marks[key.partition]
    if not waiting:
        return []
    opened = _open_in(bootstrap, list(waiting))
    return [
        held_back_line(key, ends[key].offset, mark, opened.get(key))
        for key, mark in sorted(waiting.items())
    ]


def held_back_in(
    cluster: Cluster,
    bootstrap: Bootstrap,
    described: TopicBounds,
    ends: Mapping[int, int],
) -> list[str]:
    """Return lines as `held_back` does, for partitions that are read to the last stable offset."""
    keys = [
        Key(described.topic, partition)
        for partition, bound in described.bounds.items()
        if ends.get(partition) == bound.end
    ]
    known = {key: LogPosition(described.bounds[key.partition].end, -1) for key in keys}
    return held_back(cluster, bootstrap, keys, known) if keys else []


def _open_in(bootstrap: Bootstrap, keys: Sequence[Key]) -> dict[Key, OpenTransaction]:
    """Return the first open transaction of each partition, if the brokers report it."""
    found: dict[Key, OpenTransaction] = {}
    try:
        with as_brokers(bootstrap).admin() as admin:
            for one in admin.transactions.open_in([TopicPartition(*key) for key in keys]):
                found.setdefault(Key(one.partition.topic, one.partition.partition), one)
    except OttlaError:
        pass  # Brokers may not support the request, or not permit it.
    return found


def held_back_line(key: Key, end: int, high_watermark: int, opened: OpenTransaction | None) -> str:
    """Return a sentence that names the transaction that holds back a partition's end."""
    name = f"{key.topic}-{key.partition}"
    what = (
        f"{name} is read up to offset {end} only, though it has records up to {high_watermark} "
        f"({high_watermark - end} offsets more)"
    )
    if opened is None:
        return f"{what}: a transaction is open there (`ottla txn hanging` finds it)"
    producer = f"producer id {opened.producer_id}"
    if opened.transaction is None:
        return (
            f"{what}: a transaction of {producer} hangs there, which no coordinator will end "
            "(`ottla txn abort` ends it)"
        )
    known = opened.transaction
    timeout = f", its time-out is {span_words(known.timeout_ms)}" if known.timeout_ms > 0 else ""
    begun = f" and {iso(known.start_ms)}" if known.start_ms > 0 else ""
    return (
        f"{what}: the transaction of {known.transactional_id!r} ({producer}) is open since offset "
        f"{opened.start_offset}{begun}{timeout}"
    )
