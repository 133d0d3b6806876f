"""What became of elections by command."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.view import NO_LEADER
from ottla.operations.election import Election, election

NAME = TopicPartition("t", 0)


def standing(leader: int) -> PartitionStatus:
    return PartitionStatus(NAME, leader, 3, (1, 2), (1, 2), 1)


def test_an_election_is_held_not_needed_or_refused() -> None:
    """Only a refusal has a reason."""
    led = standing(2)
    assert election(NAME, None, led) == Election(NAME, "elected", None, led)
    needless = OttlaError(ErrorCode.ELECTION_NOT_NEEDED, "it leads already")
    assert election(NAME, needless, led) == Election(NAME, "not needed", None, led)
    refusal = OttlaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "broker 1 is down")
    assert election(NAME, refusal, led) == Election(NAME, "refused", "broker 1 is down", led)


def test_a_partition_may_have_no_leader_after_it() -> None:
    """Or be gone, so that it is not known how it stands."""
    assert election(NAME, None, standing(2)).leader == 2
    assert election(NAME, None, standing(NO_LEADER)).leader is None
    assert election(NAME, None, None).leader is None
