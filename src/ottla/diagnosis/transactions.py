"""Finds transactions that hold back read_committed consumers or that no coordinator ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction


@dataclass(frozen=True, slots=True)
class StableDiagnosis:
    """The last stable offset of a partition, and its open transactions.

    The first one holds it back.

    Readers of committed records see the offsets before it, others those before `high_watermark`.
    """

    last_stable_offset: int
    high_watermark: int
    opened: Sequence[OpenTransaction]

    @property
    def held_back(self) -> int:
        """The number of offsets not yet visible to read_committed consumers."""
        return self.high_watermark - self.last_stable_offset


async def stable_offset_of(admin: Admin, name: TopicPartition) -> StableDiagnosis:
    """The open transactions that hold back the last stable offset of `name`."""
    stable, end = await admin.logs.stable_offsets(name)
    return StableDiagnosis(stable, end, await admin.transactions.open_in([name]))


async def hanging_transactions(
    admin: Admin, topics: Sequence[str], *, older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Hanging transactions of `topics` (none: all) without writes for this long.

    Partitions without a leader are left out.
    """
    standings = await admin.partitions.standings(topics or None)
    names = (one.name for one in standings if not one.is_offline)
    return hanging(await admin.transactions.open_in(names), older_than_ms, now_ms)


def hanging(
    opened: Iterable[OpenTransaction], older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """The members of `opened` unknown to all coordinators, without writes for this long."""
    return [
        one
        for one in opened
        if one.transaction is None and now_ms - one.last_written_ms >= older_than_ms
    ]
