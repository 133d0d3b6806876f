"""Laws of compaction: of each key the latest record stays where it is, and nothing else is owed."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.compression import Compression
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.record.header import read_header
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.timestamps import max_timestamp_offset, offset_for_timestamp

from .compacting import DAY_MS, Pair, add, clean, compacted_log, found
from .logs import ranges, read_headers

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"eeee"])
VALUES = st.one_of(st.none(), st.binary(min_size=1, max_size=40))
BATCH = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)
ROUNDS = st.lists(
    st.tuples(st.lists(BATCH, max_size=6), st.sampled_from(list(Compression)), st.booleans()),
    min_size=1,
    max_size=5,
)


@dataclass
class Model:
    """A replay in plain lists: (offset, key, value), and the horizons of batches."""

    records: list[tuple[int, bytes | None, bytes | None]] = field(default_factory=list)
    batch_of: dict[int, int] = field(default_factory=dict)
    horizons: dict[int, int] = field(default_factory=dict)

    def add(self, base_offset: int, pairs: list[Pair]) -> None:
        for delta, (key, value) in enumerate(pairs):
            self.records.append((base_offset + delta, key, value))
            self.batch_of[base_offset + delta] = base_offset

    def clean(self, end: int, now_ms: int) -> None:
        latest = {key: offset for offset, key, _ in self.records if offset < end}
        kept = []
        for offset, key, value in self.records:
            if offset < end:
                horizon = self.horizons.get(self.batch_of[offset])
                if latest[key] != offset:
                    continue
                if value is None and horizon is not None and now_ms >= horizon:
                    continue
            kept.append((offset, key, value))
        self.records = kept
        for offset, _, value in kept:
            if offset < end and value is None:
                self.horizons.setdefault(self.batch_of[offset], now_ms + DAY_MS)


@given(ROUNDS)
@settings(max_examples=150, deadline=None)
def test_what_stays_is_what_a_replay_says(
    rounds: list[tuple[list[list[Pair]], Compression, bool]],
) -> None:
    """Batches, codecs, small segments, tombstones and their time: offset by offset the same."""
    filesystem = MemoryFileSystem()
    log, model, now_ms, cleaned = compacted_log(filesystem, segment_bytes=250), Model(), 2_000, 0
    for batches, codec, long_after in rounds:
        for pairs in batches:
            model.add(add(log, pairs, compression=codec), pairs)
        now_ms += 2 * DAY_MS if long_after else 1
        end = log.segments.active.base_offset
        if end > cleaned:
            outcome = clean(log, first_dirty=cleaned, now_ms=now_ms)
            assert outcome.end == end
            model.clean(end, now_ms)
            cleaned = end
        assert found(log) == model.records
    log.close(clean=True)
    again = compacted_log(filesystem, segment_bytes=250, clean=True)
    assert found(again) == model.records
    assert again.log_end_offset == log.log_end_offset


def test_offsets_never_change_and_stay_valid_positions() -> None:
    """A reader at an offset whose record is gone is given the next one (P35)."""
    log = compacted_log(segment_bytes=200)
    for number in range(12):
        add(log, [(b"key", b"%d" % number)])
    clean(log)
    left = [first for first, _ in ranges(log)]
    assert left[-1] == 11
    assert log.log_end_offset == 12
    for offset in range(12):
        expected = min(first for first in left if first >= offset)
        located = log.read(offset, 1 << 20, max_offset=12)
        assert read_header(located.file.pread(61, located.position)).base_offset == expected


def test_records_without_a_key_go() -> None:
    """Nobody could say what they are the latest of; a compacted topic takes none in."""
    log = compacted_log(segment_bytes=100)
    add(log, [(None, b"1"), (b"a", b"2")])
    add(log, [(b"b", b"3")])
    add(log, [(b"c", b"4")])
    clean(log)
    assert found(log) == [(1, b"a", b"2"), (2, b"b", b"3"), (3, b"c", b"4")][: len(found(log))]
    assert (0, None, b"1") not in found(log)


def test_a_tombstone_stays_for_its_time_and_then_goes() -> None:
    """delete.retention.ms counts from the first cleaning, and is written in the batch (KIP-534)."""
    log = compacted_log(segment_bytes=80)
    add(log, [(b"a", b"1")])
    add(log, [(b"a", None)])
    add(log, [(b"b", b"2")])
    add(log, [(b"c", b"3")])
    add(log, [(b"c", b"4")])
    clean(log, now_ms=5_000)
    assert (1, b"a", None) in found(log)
    clean(log, first_dirty=log.segments.active.base_offset - 1, now_ms=5_000 + DAY_MS - 1)
    assert (1, b"a", None) in found(log)
    clean(log, first_dirty=log.segments.active.base_offset - 1, now_ms=5_000 + DAY_MS)
    assert [key for _, key, _ in found(log)].count(b"a") == 0


def test_timestamps_survive_a_horizon() -> None:
    """The horizon takes the place of the base timestamp; what records say stays the same."""
    log = compacted_log(segment_bytes=100)
    add(log, [(b"a", None), (b"b", b"1")], timestamp=123_456)
    add(log, [(b"c", b"2")], timestamp=123_457)
    clean(log, now_ms=900_000)
    first = read_header(log.segments.first.file.pread(61, 0))
    assert first.attributes & 0x40
    assert (first.base_timestamp, first.max_timestamp) == (900_000 + DAY_MS, 123_456)
    assert max_timestamp_offset(log) == (123_457, 2, 0)
    located = offset_for_timestamp(log, 123_456)
    assert located is not None
    assert (located.timestamp, located.offset) == (123_456, 0)


def test_a_producers_last_batch_stays_as_a_header() -> None:
    """Its sequences are known after a restart, though all its records were overwritten (S27)."""
    filesystem = MemoryFileSystem()
    log = compacted_log(filesystem, segment_bytes=100)
    add(log, [(b"a", b"1")], producer_id=7, producer_epoch=2, base_sequence=0)
    add(log, [(b"a", b"2")], producer_id=7, producer_epoch=2, base_sequence=1)
    for number in range(4):
        add(log, [(b"a", b"x%d" % number)])
    clean(log)
    first = read_headers(log, 0)[0]
    assert (first.producer_id, first.base_sequence, first.record_count) == (7, 1, 0)
    for snapshot in list(log.flush_state.snapshots):
        filesystem.unlink(f"{log.folder}/{snapshot:020d}.snapshot")
    again = compacted_log(filesystem, recovery_point=log.flush_state.recovery_point)
    (entry,) = again.producers.described()
    assert (entry.producer_epoch, entry.last_sequence, entry.last_offset) == (2, 1, 1)


def test_a_full_map_ends_the_range_there() -> None:
    """What did not fit is cleaned by the next pass; nothing above is judged by half a map."""
    log = compacted_log(segment_bytes=200)
    for number in range(20):
        add(log, [(b"k%d" % (number % 7), b"%d" % number)])
    before = found(log)
    outcome = clean(log, keys_max=3)
    assert outcome.end == 3
    assert found(log) == before
    passes = 0
    while outcome.end < log.segments.active.base_offset and passes < 20:
        outcome = clean(log, first_dirty=outcome.end, keys_max=7)
        passes += 1
    assert outcome.end == log.segments.active.base_offset
    closed = [entry for entry in found(log) if entry[0] < outcome.end]
    assert len(closed) == len({key for _, key, _ in closed})


def commit(log: Log, producer_id: int, *, aborts: bool = False) -> None:
    kind = ControlType.ABORT if aborts else ControlType.COMMIT
    marker = build_marker(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=1_000
    )
    log.append_as_leader(memoryview(marker), read_header(marker), 0, 1_000)


def committed(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """What a reader of committed data sees: aborted transactions left out, as clients do it."""
    aborted = sorted(
        log.segments.aborted_transactions(0, log.log_end_offset), key=lambda a: a.first_offset
    )
    result, coming, open_ids = [], list(aborted), set[int]()
    everything = {offset: (key, value) for offset, key, value in found(log)}
    for segment in log.segments:
        position = 0
        while position < segment.size:
            header = read_header(segment.file.pread(61, position))
            position += header.size
            while coming and coming[0].first_offset <= header.last_offset:
                open_ids.add(coming.pop(0).producer_id)
            if header.is_control:
                open_ids.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in open_ids):
                result += [
                    (offset, *everything[offset])
                    for offset in range(header.base_offset, header.last_offset + 1)
                    if offset in everything
                ]
    return result


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["write", "write", "commit", "abort"]), BATCH),
    max_size=25,
)


@given(STEPS, st.integers(1, 3), st.booleans())
@settings(max_examples=150, deadline=None)
def test_committed_readers_see_the_same_latest_values(
    steps: list[tuple[int, str, list[Pair]]], passes: int, long_after: bool
) -> None:
    """Producers in and out of transactions: the latest committed value of each key stays, and no
    record that was aborted ever shows.
    """
    log, sequences, open_ids = compacted_log(segment_bytes=300), [0, 0, 0], set[int]()
    for number, what, pairs in steps:
        if what != "write":
            if number in open_ids and number > 0:
                commit(log, number, aborts=what == "abort")
                open_ids.discard(number)
        elif number == 0:
            add(log, pairs)
        else:
            add(
                log,
                pairs,
                producer_id=number,
                producer_epoch=0,
                base_sequence=sequences[number],
                transactional=True,
            )
            sequences[number] += len(pairs)
            open_ids.add(number)
    for number in sorted(open_ids):
        commit(log, number)
    add(log, [(b"z", b"0" * 300)])
    add(log, [(b"z", b"0" * 300)])
    before = committed(log)
    latest = {key: (offset, value) for offset, key, value in before}
    for turn in range(passes):
        clean(log, now_ms=2_000 + turn * (2 * DAY_MS if long_after else 1))
    after = committed(log)
    assert set(after) <= set(before)
    shown = {key: (offset, value) for offset, key, value in after}
    for key, (offset, value) in latest.items():
        if value is not None:
            assert shown[key] == (offset, value)
        else:
            assert shown.get(key, (offset, None)) == (offset, None)
