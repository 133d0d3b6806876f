"""Transactions that hold readers of committed records back, and those that no coordinator ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction


@dataclass(frozen=True, slots=True)
class StableDiagnosis:
    """The last stable offset of a partition, and its open transactions: the first holds it back.

    Readers of committed records see the offsets before it, others those before `high_watermark`.
    """

    last_stable_offset: int
    high_watermark: int
    opened: Sequence[OpenTransaction]

    @property
    def held_back(self) -> int:
        """Offsets that readers of committed records do not see yet."""
        return self.high_watermark - self.last_stable_offset


async def stable_offset_of(admin: Admin, name: TopicPartition) -> StableDiagnosis:
    """What holds back the last stable offset of `name`."""
    stable, end = await admin.logs.stable_offsets(name)
    return StableDiagnosis(stable, end, await admin.transactions.open_in([name]))


async def hanging_transactions(
    admin: Admin, topics: Sequence[str], *, older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Transactions of `topics` (none: of all) that hang and were not written to for so long.

    Partitions without a leader are left out.
    """
    standings = await admin.partitions.standings(topics or None)
    names = (one.name for one in standings if not one.is_offline)
    return hanging(await admin.transactions.open_in(names), older_than_ms, now_ms)


def hanging(
    opened: Iterable[OpenTransaction], older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Of `opened`, those that no coordinator knows and that were not written to for so long."""
    return [
        one
        for one in opened
        if one.transaction is None and now_ms - one.last_written_ms >= older_than_ms
    ]
