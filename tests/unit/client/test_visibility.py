"""Which records of fetched batches a reader sees (KIP-98)."""

from ottla.client.consumer.fetcher import Chunk
from ottla.record.builder import build_batch
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.wire.messages.fetch import AbortedTransaction


def data(offset: int, value: bytes, producer: int = -1) -> bytearray:
    """A batch of two records, of a transaction where a producer is given."""
    return build_batch(
        [0, 0],
        None,
        [value, value],
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=producer >= 0,
    )


def marker(offset: int, outcome: ControlType, producer: int) -> bytearray:
    end = EndTransactionMarker(outcome, 0)
    return build_marker(
        end, producer_id=producer, producer_epoch=0, timestamp=0, base_offset=offset
    )


def visible(
    batches: list[bytearray], aborted: list[tuple[int, int]] | None, start: int = 0
) -> list[tuple[int, bytes | None]]:
    """(offset, value) of what a reader gets from `start` on."""
    told = None
    if aborted is not None:
        told = [AbortedTransaction(producer_id=p, first_offset=first) for p, first in aborted]
    chunk = Chunk(memoryview(b"".join(batches)), told, check_crc=True)
    found: list[tuple[int, bytes | None]] = []
    while (part := chunk.take(start)) is not None:
        found += [(record.offset, record.value) for record in part]
    return found


ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
LOG = [
    data(0, b"a", 1),
    data(2, b"b", 2),
    marker(4, ABORT, 1),
    data(5, b"c", 1),
    marker(7, COMMIT, 2),
    data(8, b"d"),
    marker(10, COMMIT, 1),
]


def test_aborted_transactions_end_at_their_marker() -> None:
    """The same producer's next transaction is seen again; others never were affected."""
    assert visible(LOG, [(1, 0)]) == [
        (2, b"b"),
        (3, b"b"),
        (5, b"c"),
        (6, b"c"),
        (8, b"d"),
        (9, b"d"),
    ]


def test_uncommitted_readers_see_all_data_and_no_markers() -> None:
    """Control batches are never shown."""
    assert [offset for offset, _ in visible(LOG, None)] == [0, 1, 2, 3, 5, 6, 8, 9]


def test_records_before_the_position_are_left_out() -> None:
    """A batch is fetched whole even where the position lies within it."""
    assert visible([data(0, b"a"), data(2, b"b")], None, start=1) == [
        (1, b"a"),
        (2, b"b"),
        (3, b"b"),
    ]


def test_an_incomplete_batch_at_the_end_is_not_there() -> None:
    """Answers are cut at max_bytes."""
    assert visible([data(0, b"a"), data(2, b"b")[:-1]], None) == [(0, b"a"), (1, b"a")]
