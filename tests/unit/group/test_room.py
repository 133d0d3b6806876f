"""How many groups clients may begin."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.coordinator.room import GroupRoom

MOST = 40


class Broker:
    """The groups that exist, and who may begin another."""

    def __init__(self) -> None:
        self.groups: set[str] = set()
        self.room = GroupRoom(self.groups.__contains__)

    def begin(self, owner: str, group_id: str, now_ms: int = 0) -> ErrorCode:
        try:
            self.room.begin(owner, group_id, len(self.groups), MOST, now_ms)
        except OttlaError as error:
            return error.code
        self.groups.add(group_id)
        return ErrorCode.NONE

    def begin_many(self, owner: str, count: int) -> list[ErrorCode]:
        return [self.begin(owner, f"{owner}-{number}") for number in range(count)]


def test_one_user_fills_a_quarter_and_others_begin_theirs() -> None:
    """A loop over random names is refused; the next user is not."""
    broker = Broker()
    codes = broker.begin_many("User:mallory", 1000)
    assert codes == [ErrorCode.NONE] * 10 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 990
    assert broker.begin("User:alice", "mine") is ErrorCode.NONE


def test_all_users_together_have_so_many() -> None:
    """Beyond that nobody begins one, until one ends."""
    broker = Broker()
    for number in range(4):
        assert set(broker.begin_many(f"10.0.0.{number}", 10)) == {ErrorCode.NONE}
    assert broker.begin("User:alice", "mine") is ErrorCode.GROUP_MAX_SIZE_REACHED
    broker.groups.remove("10.0.0.1-1")
    assert broker.begin("User:alice", "mine") is ErrorCode.NONE


def test_groups_that_ended_make_room_for_their_user() -> None:
    """They are looked for every ten seconds at most, since a look costs time."""
    broker = Broker()
    broker.begin_many("User:alice", 10)
    broker.groups.discard("User:alice-3")
    assert broker.begin("User:alice", "new", now_ms=9_999) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert broker.begin("User:alice", "new", now_ms=10_000) is ErrorCode.NONE
    assert broker.begin("User:alice", "newer", now_ms=10_001) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_name_has_a_length() -> None:
    """Kafka takes 32,767 bytes, which a group keeps for a week."""
    broker = Broker()
    assert broker.begin("User:alice", "x" * 1025) is ErrorCode.INVALID_GROUP_ID
    assert broker.begin("User:alice", "x" * 1024) is ErrorCode.NONE


def test_the_refusal_says_what_to_do() -> None:
    """Its setting, its cause, its remedy."""
    broker = Broker()
    broker.begin_many("User:alice", 10)
    with pytest.raises(OttlaError, match=r"a quarter of group\.max\.count.*ottla group delete"):
        broker.room.begin("User:alice", "another", len(broker.groups), MOST, 0)
