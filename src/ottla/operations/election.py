"""Elects leaders on request, and reports the outcome of each election."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStanding
from ottla.operations.moves import leaders_seen

Outcome = Literal["elected", "not needed", "refused"]


@dataclass(frozen=True, slots=True)
class Election:
    """One partition's election. `refusal`: why it failed; `standing`: the state after it."""

    name: TopicPartition
    outcome: Outcome
    refusal: str | None
    standing: PartitionStanding | None

    @property
    def leader(self) -> int | None:
        """The leader after the election; None if there is none."""
        if self.standing is None or self.standing.is_offline:
            return None
        return self.standing.leader


async def elect(
    admin: Admin, kind: ElectionKind, names: Sequence[TopicPartition] | None
) -> list[Election]:
    """Elect leaders of `names` (None: all partitions that need one), and wait for the results."""
    outcomes = await admin.partitions.elect_leaders(kind, names)
    elected = {name for name, error in outcomes.items() if error is None}

    def as_wanted(one: PartitionStanding) -> bool:
        if one.name not in elected:
            return True
        if kind is ElectionKind.UNCLEAN:
            return not one.is_offline
        return one.leader == one.replicas[0]

    standings = await leaders_seen(admin, list(outcomes), as_wanted)
    return [election(name, error, standings.get(name)) for name, error in outcomes.items()]


def election(
    name: TopicPartition, error: OttlaError | None, standing: PartitionStanding | None
) -> Election:
    """The outcome of an election that ended with `error`, or without one."""
    if error is None:
        return Election(name, "elected", None, standing)
    if error.code is ErrorCode.ELECTION_NOT_NEEDED:
        return Election(name, "not needed", None, standing)
    return Election(name, "refused", error.message, standing)
