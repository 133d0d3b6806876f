"""Records sent again are counted for the group that reads, and for no other reader."""

from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.testing.redeliveries import Owner, Redeliveries, SentRecords

NAME = TopicPartition("orders", 0)


@dataclass(eq=False)
class Connection:
    closed: bool = False


def sent(start: int, end: int, client_id: str = "app") -> SentRecords:
    return SentRecords(NAME, client_id, "/127.0.0.1", start, end)


def owned(member_id: str, committed: int | None = None) -> dict[str, Owner]:
    return {"audit": Owner("audit", member_id, "app", "/127.0.0.1", committed)}


def test_next_member_is_sent_what_was_not_committed() -> None:
    """It begins at the committed offset; what the first member was sent beyond comes again."""
    counts, first, second = Redeliveries(), Connection(), Connection()
    assert counts.on_sent(first, sent(0, 10), owned("a")) == 0
    assert counts.on_sent(first, sent(10, 14), owned("a", 4)) == 0
    first.closed = True
    assert counts.on_sent(second, sent(4, 12), owned("b", 4)) == 8
    assert counts.on_sent(second, sent(12, 20), owned("b", 4)) == 2
    assert counts.on_sent(second, sent(20, 30), owned("b", 20)) == 0


def test_a_reader_beside_the_member_is_no_redelivery() -> None:
    """The member still reads over its connection; another one of the same client id is a tool."""
    counts, member, tool = Redeliveries(), Connection(), Connection()
    assert counts.on_sent(member, sent(0, 10), owned("a")) == 0
    assert counts.on_sent(tool, sent(0, 10), owned("a")) == 0
    assert counts.on_sent(member, sent(10, 12), owned("a")) == 0


def test_a_reader_that_does_not_begin_at_the_committed_offset_is_another() -> None:
    counts, member, tool = Redeliveries(), Connection(), Connection()
    assert counts.on_sent(member, sent(0, 10), owned("a")) == 0
    member.closed = True
    assert counts.on_sent(tool, sent(0, 10), owned("a", 10)) == 0


def test_a_client_of_another_name_is_no_member() -> None:
    counts, member, tool = Redeliveries(), Connection(), Connection()
    assert counts.on_sent(member, sent(0, 10), owned("a")) == 0
    member.closed = True
    assert counts.on_sent(tool, sent(0, 10, client_id="tool"), owned("a")) == 0


def test_a_member_that_seeks_back_is_sent_records_again() -> None:
    counts, member = Redeliveries(), Connection()
    assert counts.on_sent(member, sent(0, 10), owned("a")) == 0
    assert counts.on_sent(member, sent(7, 12), owned("a")) == 3
    assert counts.on_sent(member, sent(0, 12), owned("a")) == 12


def test_each_group_counts_by_itself() -> None:
    """A second group reads the records for the first time."""
    counts, one, other = Redeliveries(), Connection(), Connection()
    assert counts.on_sent(one, sent(0, 10), owned("a")) == 0
    both = owned("a") | {"billing": Owner("billing", "b", "app", "/127.0.0.1", None)}
    assert counts.on_sent(other, sent(0, 10), both) == 0
    assert counts.on_sent(other, sent(5, 10), both) == 5
