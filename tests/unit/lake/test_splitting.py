"""Tasks are of one size, whatever the partitions are; no offset is lost between them."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model.plan import PartitionBounds, Range, SizedRange, joined, split

MIB = 1 << 20


def test_large_partition_is_split_into_equal_tasks() -> None:
    """1,000 MiB in 1,000 offsets: eight pieces of 125 MiB, and not seven with a remainder."""
    pieces = split([Range("t", 0, 0, 1000)], {0: PartitionBounds(0, 1000)}, {0: 1000 * MIB})
    assert [(one.wanted.start, one.wanted.end) for one in pieces] == [
        (n * 125, n * 125 + 125) for n in range(8)
    ]
    assert {one.size_bytes for one in pieces} == {125 * MIB}


def test_size_is_the_share_of_the_log_that_a_range_has() -> None:
    """A load of the last tenth of a large log is one task."""
    bounds = {0: PartitionBounds(1000, 2000)}
    assert split([Range("t", 0, 1900, 2000)], bounds, {0: 1000 * MIB}) == [
        SizedRange(Range("t", 0, 1900, 2000), 100 * MIB)
    ]


def test_without_a_size_offsets_are_taken_for_small_records() -> None:
    bounds = {0: PartitionBounds(0, 3 * MIB)}
    pieces = split([Range("t", 0, 0, 3 * MIB)], bounds, {})
    assert [one.wanted.end for one in pieces] == [MIB, 2 * MIB, 3 * MIB]


def test_an_offset_is_never_cut() -> None:
    """One record of 1 GiB is one task."""
    (piece,) = split([Range("t", 0, 5, 6)], {0: PartitionBounds(5, 6)}, {0: 1024 * MIB})
    assert piece.wanted == Range("t", 0, 5, 6)


def test_small_ranges_share_a_task() -> None:
    """200 partitions of 1 MiB are 13 tasks, not 200 and not 399."""
    groups = joined([MIB] * 200)
    assert len(groups) == 13
    assert groups[0] == list(range(16))
    assert sum(groups, []) == list(range(200))  # noqa: RUF017


def test_large_range_has_a_task_of_its_own() -> None:
    assert joined([3, 100, 3, 3, 5], join_bytes=10) == [[0], [1], [2, 3], [4]]
    assert joined([]) == []


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 1000), st.integers(0, 5000)), max_size=6),
    st.integers(1, 900),
)
def test_pieces_cover_each_offset_once(
    partitions: list[tuple[int, int, int]], split_bytes: int
) -> None:
    ranges = [Range("t", n, start, start + size) for n, (start, size, _) in enumerate(partitions)]
    bounds = {one.partition: PartitionBounds(0, one.end) for one in ranges}
    sizes = {n: log_bytes for n, (_, _, log_bytes) in enumerate(partitions)}
    pieces = [one.wanted for one in split(ranges, bounds, sizes, split_bytes=split_bytes)]

    assert all(one.start < one.end for one in pieces)
    covered = [(one.partition, offset) for one in pieces for offset in range(one.start, one.end)]
    assert covered == [(r.partition, offset) for r in ranges for offset in range(r.start, r.end)]


@given(st.lists(st.integers(0, 30), max_size=40))
def test_every_range_is_in_one_task(sizes: list[int]) -> None:
    groups = joined(sizes, join_bytes=20)
    assert [place for group in groups for place in group] == list(range(len(sizes)))
    assert all(len(g) == 1 or sum(sizes[place] for place in g) <= 20 for g in groups)
