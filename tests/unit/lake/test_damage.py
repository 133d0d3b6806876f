"""Batches that cannot be read fail a range, or are skipped with exactly their offsets counted."""

from collections.abc import Callable, Generator

import pytest

from ottla.base.errors import OttlaError
from ottla.client.common.placed import placed
from ottla.lake.model.plan import Range
from ottla.lake.rows.columns import ColumnBuilder
from ottla.lake.source.cluster import Fetched
from ottla.lake.source.reader import read_range
from ottla.ledger.partition import PartitionLedger, RangeAccount, Unreadable
from ottla.record.builder import build_batch
from ottla.record.compression import Compression
from ottla.record.control import ControlType
from ottla.record.header import HEADER_SIZE, computed_crc, read_header
from ottla.record.reader import CorruptBatch
from tests.unit.lake.test_reader import data, marker

# Where a header's fields begin.
BASE_OFFSET, LENGTH, MAGIC, CRC, DELTA, COUNT = 0, 8, 16, 17, 23, 57

Change = Callable[[bytearray], None]


def flip(position: int, mask: int = 1) -> Change:
    def change(batch: bytearray) -> None:
        batch[position] ^= mask

    return change


class StoredLog:
    """A partition's log in batches, one behind the other, and a leader that looks at no checksum.

    `damaged` changes a batch for each fetch that gives it, as often as it says. The leader finds
    each batch by what was written, or by headers alone from an index entry on.
    """

    def __init__(self, *stored: bytes, aborted: tuple[tuple[int, int, int], ...] = ()) -> None:
        headers = [read_header(batch) for batch in stored]
        self._spans = [(header.base_offset, header.last_offset) for header in headers]
        self._stored = [bytearray(batch) for batch in stored]
        # Producer, first and last offset.
        self._aborted = aborted
        self._flipped: tuple[int, Change] | None = None
        self.asked: list[int] = []

    def damage(self, number: int, change: Change) -> "StoredLog":
        change(self._stored[number])
        return self

    def damage_once(self, number: int, change: Change) -> "StoredLog":
        """On the way only: the next answer that holds the batch."""
        self._flipped = (number, change)
        return self

    def _from(self, offset: int) -> bytes:
        self.asked.append(offset)
        first = next(n for n, last in enumerate(self._lasts()) if last >= offset)
        answer = [bytes(batch) for batch in self._stored[first:]]
        if self._flipped is not None and self._flipped[0] >= first:
            number, change = self._flipped
            changed = bytearray(answer[number - first])
            change(changed)
            answer[number - first] = bytes(changed)
            self._flipped = None
        return b"".join(answer)

    def _lasts(self) -> list[int]:
        """By what the leader finds a batch: the last offset of each."""
        return [last for _, last in self._spans]

    def fetch(self, wanted: Range) -> Generator[Fetched]:
        position = wanted.start
        while position < wanted.end:
            aborted = tuple((p, first) for p, first, last in self._aborted if last >= position)
            found = placed(self._from(position), position, self.end_offset("t", 0))
            if not found.batches:
                assert found.damage is not None
                raise found.damage
            position = found.next_offset
            yield Fetched(bytes(found.batches), 0, aborted)

    def peek(self, _topic: str, _partition: int, offset: int) -> bytes:
        return self._from(offset)

    def end_offset(self, _topic: str, _partition: int) -> int:
        return self._spans[-1][1] + 1


class WalkedLog(StoredLog):
    """Its leader finds each batch by the headers as they are, from the first one on."""

    def _lasts(self) -> list[int]:
        lasts = [read_header(bytes(batch)).last_offset for batch in self._stored]
        return [*lasts[:-1], max(lasts[-1], self._spans[-1][1])]


def read(
    log: StoredLog, start: int, end: int, *, compacted: bool = False, skip: bool = True
) -> tuple[list[int], PartitionLedger, list[Unreadable]]:
    account = RangeAccount(0, start, end, gaps_are_compaction=compacted)
    rows = read_range(Range("t", 0, start, end), log, account, skip_unreadable=skip)
    offsets = [offset for batch in rows for offset in batch.column("offset").to_pylist()]
    return offsets, account.ledger(), account.skipped


def three() -> StoredLog:
    return StoredLog(data(0, 4), data(4, 3), data(7, 5))


def test_without_the_option_the_error_names_place_cause_and_remedy() -> None:
    log = three().damage(1, flip(-2))

    with pytest.raises(OttlaError, match=r"t-0 cannot be read at offset 4: .*checksum.*--skip-unr"):
        read(log, 0, 12, skip=False)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("change", [flip(-2), flip(MAGIC), flip(LENGTH)])
def test_damage_on_the_way_costs_no_record(change: Change, skip: bool) -> None:
    """A batch is fetched a second time before it is called unreadable."""
    log = three().damage_once(1, change)
    offsets, ledger, skipped = read(log, 0, 12, skip=skip)

    assert offsets == list(range(12))
    assert (ledger, skipped) == (PartitionLedger(0, 0, 12, loaded=12), [])


# Each is one flipped bit: in the records, in every field that says what the batch covers.
FLIPS = {
    "records": flip(-2),
    "checksum": flip(CRC),
    "magic": flip(MAGIC),
    "longer": flip(LENGTH + 3, 4),
    "much longer": flip(LENGTH, 0x40),
    "negative length": flip(LENGTH, 0x80),
    "more offsets": flip(DELTA, 0x40),
    "fewer offsets": flip(DELTA + 3, 2),
    "negative offsets": flip(DELTA, 0x80),
    "more records": flip(COUNT + 3, 4),
    "fewer records": flip(COUNT + 3, 2),
    "negative count": flip(COUNT, 0x80),
}


@pytest.mark.parametrize("change", FLIPS.values(), ids=FLIPS.keys())
def test_exactly_the_damaged_batch_is_skipped(change: Change) -> None:
    """Whatever bit it is: no good record is lost with it, and all offsets are accounted for."""
    offsets, ledger, skipped = read(three().damage(1, change), 0, 12)

    assert offsets == [0, 1, 2, 3, 7, 8, 9, 10, 11]
    assert ledger == PartitionLedger(0, 0, 12, loaded=9, unreadable=3)
    assert ledger.balances
    assert [(one.start, one.end) for one in skipped] == [(4, 7)]


@pytest.mark.parametrize("change", FLIPS.values(), ids=FLIPS.keys())
def test_what_is_behind_the_range_does_not_widen_it(change: Change) -> None:
    """A range that ends within the damaged batch has its part of it; so has the next range."""
    _, first, _ = read(three().damage(1, change), 0, 5)
    offsets, second, _ = read(three().damage(1, change), 5, 12)

    assert first == PartitionLedger(0, 0, 5, loaded=4, unreadable=1)
    assert offsets == [7, 8, 9, 10, 11]
    assert first.followed_by(second) == PartitionLedger(0, 0, 12, loaded=9, unreadable=3)


@pytest.mark.parametrize("kind", [StoredLog, WalkedLog])
def test_no_bit_of_a_header_makes_wrong_rows_or_loses_good_ones(kind: type[StoredLog]) -> None:
    """Each of 488: all other records are read, or the range is an error or does not balance.

    The latter two where the base offset is wrong, which no checksum covers, or where the leader
    itself is misled.
    """
    refused = set()
    for bit in range(HEADER_SIZE * 8):
        log = kind(data(0, 4), data(4, 3), data(7, 5)).damage(1, flip(bit // 8, 1 << bit % 8))
        try:
            offsets, ledger, skipped = read(log, 0, 12)
        except OttlaError:
            refused.add(bit // 8)
            continue
        if not ledger.balances:
            refused.add(bit // 8)
            continue
        wanted = [o for o in range(12) if not any(one.start <= o < one.end for one in skipped)]
        assert (offsets, {4, 5, 6}.issuperset(set(range(12)) - set(wanted))) == (wanted, True), bit
    misleading = range(DELTA, DELTA + 4) if kind is WalkedLog else ()
    assert refused <= {*range(BASE_OFFSET, LENGTH), *misleading}


def test_the_last_batch_is_believed_where_its_counts_agree() -> None:
    offsets, ledger, _ = read(three().damage(2, flip(-2)), 0, 12)

    assert offsets == list(range(7))
    assert ledger == PartitionLedger(0, 0, 12, loaded=7, unreadable=5)


def test_where_nothing_behind_the_damage_can_be_read_it_is_an_error() -> None:
    """Nothing bounds a last batch whose length is wrong: its offsets are not made up."""
    with pytest.raises(OttlaError, match=r"from offset 7 on .* nothing behind it"):
        read(three().damage(2, flip(LENGTH, 0x40)), 0, 12)


def test_neighbours_that_are_damaged_are_skipped_together() -> None:
    log = StoredLog(data(0, 4), data(4, 3), data(7, 5), data(12, 2))
    log.damage(1, flip(LENGTH, 0x40)).damage(2, flip(-2))
    offsets, ledger, skipped = read(log, 0, 14)

    assert offsets == [0, 1, 2, 3, 12, 13]
    assert ledger == PartitionLedger(0, 0, 14, loaded=6, unreadable=8)
    assert [(one.start, one.end) for one in skipped] == [(4, 12)]


def test_the_search_is_bounded() -> None:
    """Two questions for each step of a doubling, and of the halving behind it."""
    log = StoredLog(data(0, 1), data(1, 100_000), data(100_001, 5))
    log.damage(1, flip(MAGIC))
    _, ledger, _ = read(log, 0, 100_006)

    assert ledger == PartitionLedger(0, 0, 100_006, loaded=6, unreadable=100_000)
    assert len(log.asked) < 4 * 18


def test_compacted_gap_behind_a_damaged_batch_stays_compacted() -> None:
    log = StoredLog(data(0, 4), data(4, 3), data(9, 3)).damage(1, flip(-2))
    _, ledger, _ = read(log, 0, 12, compacted=True)

    assert ledger == PartitionLedger(0, 0, 12, loaded=7, compacted=2, unreadable=3)


def test_content_that_is_wrong_under_a_right_checksum_is_unreadable() -> None:
    """As a producer with a mistake wrote it."""

    def truncate_a_record(batch: bytearray) -> None:
        batch[HEADER_SIZE] ^= 0x04
        batch[CRC : CRC + 4] = computed_crc(batch, 0, len(batch)).to_bytes(4, "big")

    offsets, ledger, _ = read(three().damage(1, truncate_a_record), 0, 12)

    assert offsets == [0, 1, 2, 3, 7, 8, 9, 10, 11]
    assert ledger == PartitionLedger(0, 0, 12, loaded=9, unreadable=3)


def test_a_lost_abort_marker_takes_no_later_transaction_with_it() -> None:
    """The next transaction of the producer committed: its records are not aborted ones."""
    log = StoredLog(
        data(0, 2, producer_id=7),
        marker(2, 7, ControlType.ABORT),
        data(3, 2, producer_id=7),
        marker(5, 7, ControlType.COMMIT),
        aborted=((7, 0, 2),),
    ).damage(1, flip(-2))
    offsets, ledger, _ = read(log, 0, 6)

    assert offsets == [3, 4]
    assert ledger == PartitionLedger(0, 0, 6, loaded=2, control=1, aborted=2, unreadable=1)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_batch_that_is_refused_leaves_nothing_behind(codec: Compression) -> None:
    """Rows, payload and times are as they were before it; what comes later is right."""
    batch = bytearray(
        build_batch([5, 5, 5], None, [b"a", b"b", b"c"], base_offset=4, compression=codec)
    )
    batch[COUNT + 3] = 4
    batch[DELTA + 3] = 3
    builder = ColumnBuilder("t", 0, 0, 12)
    builder.add(data(0, 4), 0, read_header(data(0, 4)))
    payload_bytes = builder.payload_bytes
    with pytest.raises(CorruptBatch):
        builder.add(bytes(batch), 0, read_header(batch))

    assert (builder.row_count, builder.payload_bytes) == (4, payload_bytes)
    builder.add(data(7, 2), 0, read_header(data(7, 2)))
    rows = builder.take()
    assert rows is not None
    assert rows.column("value").to_pylist() == [b"0", b"1", b"2", b"3", b"7", b"8"]
