"""What is reported of events that come again and again."""

from ottla.base.log_lines import Seldom


def test_the_first_of_a_kind_is_reported_and_then_one_an_interval() -> None:
    """With the number of those that were not."""
    seldom = Seldom(100)
    assert [seldom.admit("a", now_ms) for now_ms in (0, 1, 99, 100, 150, 200)] == [
        0, None, None, 2, None, 1,
    ]  # fmt: skip


def test_kinds_do_not_hide_each_other() -> None:
    """Each has its own interval."""
    seldom = Seldom(100)
    assert [seldom.admit(kind, 5) for kind in ("a", "b", "a", "b")] == [0, 0, None, None]


def test_the_number_of_kinds_is_bounded() -> None:
    """Clients choose their names: a thousand are remembered, the oldest is forgotten."""
    seldom = Seldom(100)
    for number in range(1_001):
        assert seldom.admit(number, 0) == 0
    assert seldom.admit(1_000, 0) is None
    assert seldom.admit(1, 0) is None
    assert seldom.admit(0, 0) == 0


def test_what_is_left_out_counts_by_its_weight():
    seldom = Seldom(1_000)
    assert seldom.admit("a", 0, 5) == 0
    assert seldom.admit("a", 10, 5) is None
    assert seldom.admit("a", 20) is None
    assert seldom.admit("a", 1_000, 5) == 6
