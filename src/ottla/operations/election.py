"""Elects leaders on request, and ends hanging transactions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStatus
from ottla.operations.moves import leaders_seen

Outcome = Literal["elected", "not needed", "refused"]


@dataclass(frozen=True, slots=True)
class Election:
    """The election of one partition: why it failed, if it did, and the state after it."""

    name: TopicPartition
    outcome: Outcome
    refusal: str | None
    standing: PartitionStatus | None

    @property
    def leader(self) -> int | None:
        """Return the leader after the election; None if there is none."""
        if self.standing is None or self.standing.is_offline:
            return None
        return self.standing.leader


async def elect(
    admin: Admin, kind: ElectionKind, names: Sequence[TopicPartition] | None
) -> list[Election]:
    """Elect leaders of `names` (None: all partitions that need one), and wait for the results."""
    outcomes = await admin.partitions.elect_leaders(kind, names)
    elected = {name for name, error in outcomes.items() if error is None}

    def as_wanted(one: PartitionStatus) -> bool:
        if one.name not in elected:
            return True
        if kind is ElectionKind.UNCLEAN:
            return not one.is_offline
        return one.leader == one.replicas[0]

    standings = await leaders_seen(admin, list(outcomes), as_wanted)
    return [election(name, error, standings.get(name)) for name, error in outcomes.items()]


def election(
    name: TopicPartition, error: OttlaError | None, standing: PartitionStatus | None
) -> Election:
    """Return the outcome of an election; `error` is None if it succeeded."""
    if error is None:
        return Election(name, "elected", None, standing)
    if error.code is ErrorCode.ELECTION_NOT_NEEDED:
        return Election(name, "not needed", None, standing)
    return Election(name, "refused", error.message, standing)


async def abort_hanging(admin: Admin, name: TopicPartition, start_offset: int) -> None:
    """Abort the hanging transaction that begins at `start_offset` of the partition.

    Raises INVALID_TXN_STATE if no transaction begins there, or if its coordinator will end it.
    """
    for one in await admin.transactions.open_in([name]):
        if one.start_offset != start_offset:
            continue
        if one.transaction is not None:
            raise OttlaError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction at {name} offset {start_offset} is that of "
                f"{one.transaction.transactional_id!r}, which its coordinator will end; "
                f"`ottla txn abort {one.transaction.transactional_id}` does so now",
            )
        await admin.transactions.abort_in_partition(one)
        return
    raise OttlaError(
        ErrorCode.INVALID_TXN_STATE,
        f"no open transaction begins at {name} offset {start_offset}; "
        f"`ottla why lso {name}` shows those that are open",
    )
