"""Dead letters of share groups: where they go and what they hold (KIP-1191)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.codec import Record
from ottla.record.reader import batches, records
from ottla.share.dead_letters import (
    Letters,
    Origin,
    check_name,
    check_topic,
    destination,
    write_letters,
)
from ottla.share.deliveries import Dead

ORIGIN = Origin("workers", "tasks", 4)
OPEN = {"errors.deadletterqueue.group.enable": "true"}


def read(letters: Letters) -> list[Record]:
    ((position, header),) = batches(letters.batch)
    return records(letters.batch, position, header)


def context(offset: int, count: int, message: str) -> list[tuple[str, bytes]]:
    return [
        ("__dlq.errors.topic", b"tasks"),
        ("__dlq.errors.partition", b"4"),
        ("__dlq.errors.offset", str(offset).encode()),
        ("__dlq.errors.group", b"workers"),
        ("__dlq.errors.delivery.count", str(count).encode()),
        ("__dlq.errors.message", message.encode()),
    ]


def test_a_letter_tells_where_the_record_stood_and_why_it_is_dead() -> None:
    """One for each offset, with the time of its writing and nothing of the record."""
    dead = Dead(7, 8, 5, rejected=False)
    letters = write_letters(ORIGIN, dead, {}, upto=8, now_ms=1000, max_bytes=10_000)
    assert (letters.last, letters.bare) == (8, 0)
    why = "Offset delivery count exceeded the threshold."
    assert [(r.timestamp, r.key, r.value, r.headers) for r in read(letters)] == [
        (1000, None, None, context(7, 5, why)),
        (1000, None, None, context(8, 5, why)),
    ]


def test_content_comes_along_before_the_context() -> None:
    """So that the last header of a name is the letter's own; what the log lacks comes bare."""
    found = {3: Record(3, 17, b"key", b"value", [("__dlq.errors.topic", b"lie"), ("h", None)])}
    dead = Dead(3, 4, 1, rejected=True)
    letters = write_letters(ORIGIN, dead, found, upto=4, now_ms=1000, max_bytes=10_000)
    first, second = read(letters)
    why = "Offset rejected by client."
    assert (first.timestamp, first.key, first.value) == (1000, b"key", b"value")
    assert first.headers == [
        ("__dlq.errors.topic", b"lie"),
        ("h", None),
        *context(3, 1, why),
    ]
    assert (second.key, second.value, second.headers) == (None, None, context(4, 1, why))


def test_letters_end_where_the_log_was_not_looked_at_yet() -> None:
    """What is behind `upto` comes with the next batch."""
    dead = Dead(3, 9, 1, rejected=True)
    letters = write_letters(ORIGIN, dead, {}, upto=5, now_ms=0, max_bytes=10_000)
    assert (letters.last, len(read(letters))) == (5, 3)


def test_letters_that_do_not_fit_into_a_batch_come_with_the_next() -> None:
    """And no batch is larger than its topic takes."""
    found = {offset: Record(offset, 0, None, b"x" * 300) for offset in range(10)}
    dead = Dead(0, 9, 1, rejected=True)
    sizes, offsets = [], []
    while dead.first <= 9:
        letters = write_letters(ORIGIN, dead, found, upto=9, now_ms=0, max_bytes=2000)
        sizes.append(len(letters.batch))
        offsets += [dict(each.headers)["__dlq.errors.offset"] for each in read(letters)]
        assert letters.bare == 0
        dead = dead._replace(first=letters.last + 1)
    assert max(sizes) <= 2000
    assert offsets == [b"%d" % offset for offset in range(10)]


def test_a_record_larger_than_any_batch_leaves_a_bare_letter() -> None:
    """Rather than none: the letter still tells where it stood."""
    found = {5: Record(5, 0, None, b"x" * 5000)}
    dead = Dead(5, 5, 1, rejected=True)
    letters = write_letters(ORIGIN, dead, found, upto=5, now_ms=0, max_bytes=2000)
    (record,) = read(letters)
    assert (letters.last, letters.bare, record.value) == (5, 1, None)


def test_a_batch_has_a_thousand_letters_at_most() -> None:
    """Nobody else is kept waiting by the making of a batch."""
    dead = Dead(0, 4999, 1, rejected=True)
    letters = write_letters(ORIGIN, dead, {}, upto=4999, now_ms=0, max_bytes=1 << 20)
    assert (letters.last, len(read(letters))) == (999, 1000)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("__dlq", "begins with __"),
        ("dlq.a b", "Topic name is invalid"),
        ("letters", "does not begin with dlq."),
    ],
)
def test_names_that_no_dead_letter_topic_may_have_are_refused(name: str, said: str) -> None:
    """With INVALID_CONFIG and what to do instead."""
    with pytest.raises(OttlaError, match=said) as caught:
        check_name(name, "dlq.")
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_an_empty_prefix_allows_every_name() -> None:
    """As the brokers' setting says."""
    check_name("letters", "")
    check_name("dlq.letters", "dlq.")


def test_a_topic_takes_letters_only_if_its_owner_said_so_and_not_its_own() -> None:
    """Else a member could have records written wherever its group's settings point."""
    check_topic("dlq.a", OPEN, "tasks")
    for configs, source, said in (
        ({}, "tasks", "is not open for dead letters"),
        ({"errors.deadletterqueue.group.enable": "false"}, "tasks", "is not open"),
        (OPEN, "dlq.a", "its own dead letters"),
    ):
        with pytest.raises(OttlaError, match=said) as caught:
            check_topic("dlq.a", configs, source)
        assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_partitions_are_spread_over_those_of_the_dead_letter_topic() -> None:
    """Partition 4 of a topic goes to 1 of 3."""
    assert [destination(4, count) for count in (1, 3, 5)] == [0, 1, 4]
