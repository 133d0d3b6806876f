"""A micro-batch stays within its limits, goes on in any case, and is fair to small partitions."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.source.backlog import admitted, is_enough, waits

backlogs = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=6)
limits = st.none() | st.integers(1, 5000)


@given(backlogs, limits, limits, st.floats(0.5, 300))
def test_limits_hold_and_something_is_read(
    backlog: dict[int, int], records_max: int | None, bytes_max: int | None, size: float
) -> None:
    found = admitted(backlog, dict.fromkeys(backlog, size), records_max, bytes_max, {})
    total = sum(found.values())

    assert found.keys() == backlog.keys()
    assert all(0 <= found[key] <= backlog[key] for key in backlog)
    assert (total > 0) == any(backlog.values())
    if records_max is not None:
        assert total <= records_max
    if bytes_max is not None and total > 1:
        assert total * size <= bytes_max * (1 + 1e-9)
    if records_max is None and bytes_max is None:
        assert found == backlog


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6), st.integers(6, 3000))
def test_no_partition_gets_less_than_its_share_unless_it_has_less(
    counts: list[int], records_max: int
) -> None:
    backlog = dict(enumerate(counts))
    found = admitted(backlog, {}, records_max, None, {})
    share = records_max // len(counts)
    assert all(found[key] >= min(share, backlog[key]) for key in backlog)


@given(
    st.dictionaries(
        st.integers(0, 5), st.tuples(st.integers(1, 1000), st.floats(0.5, 300)), min_size=1
    ),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(1, 600),
)
def test_no_partition_waits_for_more_micro_batches_than_there_are_others(
    partitions: dict[int, tuple[int, float]], records_max: int | None, bytes_max: int | None
) -> None:
    """However small the limit, and however much comes into the others meanwhile."""
    backlog = {key: count for key, (count, _) in partitions.items()}
    sizes = {key: size for key, (_, size) in partitions.items()}
    waited: dict[int, int] = {}
    for _ in range(3 * len(backlog)):
        counts = admitted(backlog, sizes, records_max, bytes_max, waited)
        waited = waits(waited, backlog, counts)
        assert max(waited.values(), default=0) < len(backlog)


def test_what_one_does_not_need_goes_to_the_others() -> None:
    assert admitted({"a": 10, "b": 1000, "c": 1000}, {}, 210, None, {}) == {
        "a": 10,
        "b": 100,
        "c": 100,
    }
    sizes = {"a": 1.0, "b": 10.0}
    assert admitted({"a": 100, "b": 100}, sizes, None, 600, {}) == {"a": 100, "b": 50}


def test_a_record_larger_than_the_limit_is_read_alone() -> None:
    assert admitted({0: 3, 1: 9}, {0: 5000.0, 1: 5000.0}, None, 100, {}) == {0: 1, 1: 0}


def test_enough_by_either_measure() -> None:
    backlog, sizes = {0: 10, 1: 5}, {0: 100.0, 1: 10.0}
    assert is_enough(backlog, sizes, None, None)
    assert is_enough(backlog, sizes, 15, None)
    assert not is_enough(backlog, sizes, 16, None)
    assert is_enough(backlog, sizes, 16, 1050)
    assert not is_enough(backlog, sizes, None, 1051)
