"""The one schema of dead letters."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.record.dead_letters import (
    DeadLetter,
    letter_headers,
    mark_headers,
    own_headers,
    parse_letter,
    parse_mark,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=10)
NUMBERS = st.integers(0, 2**62)
LETTERS = st.builds(
    DeadLetter,
    TEXTS,
    st.integers(0, 2**31 - 1),
    NUMBERS,
    TEXTS,
    TEXTS,
    stage=st.sampled_from(["delivery", "decode.value", "schema", "timestamp"]),
    delivery_count=st.integers(1, 1000),
    schema_id=st.none() | NUMBERS,
    timestamp_ms=st.none() | st.integers(-(2**63), 2**63 - 1),
)
OWN = st.lists(st.tuples(TEXTS.filter(lambda name: not name.startswith("__dlq.")), st.binary()))


@given(LETTERS, OWN)
def test_headers_of_a_letter_say_what_was_written(
    letter: DeadLetter, own: list[tuple[str, bytes]]
) -> None:
    """Behind those of the record itself, which stay as they were."""
    headers = [*own, *letter_headers(letter)]
    assert parse_letter(headers) == letter
    assert own_headers(headers) == own
    assert parse_mark(headers) is None


def test_a_share_groups_letter_has_the_headers_of_kip_1191_only() -> None:
    """In Kafka's order and words."""
    letter = DeadLetter("tasks", 4, 1207, "workers", "Offset rejected by client.", delivery_count=5)
    assert letter_headers(letter) == [
        ("__dlq.errors.topic", b"tasks"),
        ("__dlq.errors.partition", b"4"),
        ("__dlq.errors.offset", b"1207"),
        ("__dlq.errors.group", b"workers"),
        ("__dlq.errors.delivery.count", b"5"),
        ("__dlq.errors.message", b"Offset rejected by client."),
    ]


def test_a_letter_of_a_letter_says_where_the_last_one_stood() -> None:
    """A record that was redriven and died again has the headers of its last death at the end."""
    first, second = (DeadLetter("t", 0, offset, "g", "m") for offset in (1, 2))
    assert parse_letter([*letter_headers(first), *letter_headers(second)]) == second


def test_a_mark_names_its_letter_and_is_none_itself() -> None:
    """And what has other headers is neither."""
    assert parse_mark(mark_headers(3, 7)) == (3, 7)
    assert parse_letter(mark_headers(3, 7)) is None
    half = [("__dlq.redriven.partition", b"x"), ("__dlq.redriven.offset", None)]
    for headers in ([], [("a", b"1")], [("__dlq.errors.topic", b"t")], half):
        assert parse_letter(headers) is None
        assert parse_mark(headers) is None
