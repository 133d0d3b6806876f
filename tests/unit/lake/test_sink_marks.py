"""Which portion of a series may be written, as its mark says."""

import pytest

from ottla.base.errors import OttlaError
from ottla.client import OffsetAndMetadata
from ottla.lake.edges.sink_commit import PortionMark, as_offset, is_committed, newest


def test_mark_is_an_offset_and_comes_back() -> None:
    """The number of the portion that comes next, with kind, number and records in words."""
    offset = as_offset(PortionMark(17, 2_000))
    assert offset.offset == 18
    assert offset.metadata == '{"kind": "ottla sink", "number": 17, "records": 2000}'
    assert newest([offset]) == PortionMark(17, 2_000)


def test_mark_keeps_the_choice_that_it_followed() -> None:
    assert newest([as_offset(PortionMark(17, 1, 15))]) == PortionMark(17, 1, 15)


def test_newest_of_several_marks_counts() -> None:
    """Where a series has come to another topic, it has a mark there, too."""
    assert newest(
        [as_offset(PortionMark(3, 1)), as_offset(PortionMark(5, 2)), as_offset(PortionMark(4, 9))]
    ) == PortionMark(5, 2)
    assert newest([]) is None


@pytest.mark.parametrize(
    "offset",
    [
        OffsetAndMetadata(5, ""),
        OffsetAndMetadata(5, "{}"),
        OffsetAndMetadata(5, "[1]"),
        OffsetAndMetadata(7, '{"kind": "ottla sink", "number": 17, "records": 1}'),
        OffsetAndMetadata(18, '{"kind": "other", "number": 17, "records": 1}'),
    ],
)
def test_offset_that_is_no_mark_is_refused(offset: OffsetAndMetadata) -> None:
    """Somebody set the group's offsets: which portions are there is not known any more."""
    with pytest.raises(OttlaError, match="which the sink did not write"):
        newest([offset])


@pytest.mark.parametrize(
    ("mark", "number", "first", "expected"),
    [
        (None, 0, None, False),
        (PortionMark(0, 5), 0, None, True),
        (PortionMark(0, 5), 1, None, False),
        (PortionMark(41, 5), 41, None, True),
        (PortionMark(41, 5), 42, None, False),
        (None, 17, 17, False),
        (PortionMark(17, 1), 17, 17, True),
        (PortionMark(3, 1), 17, 17, False),
        (PortionMark(17, 1), 18, 17, False),
        (PortionMark(25, 1, 17), 16, 30, True),
        (PortionMark(25, 1, 17), 5, 5, False),
    ],
)
def test_portion_is_new_or_committed(
    mark: PortionMark | None, number: int, first: int | None, expected: bool
) -> None:
    """The portion of the mark is there; the one after it is not."""
    assert is_committed(mark, number, first, "s") is expected


@pytest.mark.parametrize(
    ("mark", "number", "first", "words"),
    [
        (None, 3, None, "no mark of s is there. The brokers forget it"),
        (PortionMark(5, 1), 0, None, "already at epoch 5"),
        (None, 18, 17, "no mark of s is there"),
        (PortionMark(5, 1), 3, None, "already at epoch 5: the checkpoint is an old copy"),
        (PortionMark(5, 1), 7, None, "at epoch 5: epochs after it were not written here"),
        (PortionMark(25, 1, 17), 17, 17, "already at epoch 25"),
        (PortionMark(25, 1, 17), 16, 17, "already at epoch 25"),
    ],
)
def test_portion_that_does_not_follow_the_mark_is_refused(
    mark: PortionMark | None, number: int, first: int | None, words: str
) -> None:
    """Written or left out, it would be a guess; the error names the option that decides."""
    with pytest.raises(OttlaError, match=words) as error:
        is_committed(mark, number, first, "s")
    assert f'.option("firstEpoch", "s:{number}"), or "s:{number + 1}"' in error.value.message


def test_portion_before_the_named_first_is_left_out() -> None:
    """`firstEpoch` names the first epoch that the topic does not have: earlier ones it has."""
    assert is_committed(None, 16, 17, "s") is True
