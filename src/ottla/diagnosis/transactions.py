"""Finds transactions that hold back read_committed consumers or that no coordinator ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.transactions import OpenTransaction


@dataclass(frozen=True, slots=True)
class StableDiagnosis:
    """The last stable offset of a partition, and its open transactions; the first holds it back.

    Consumers with read_committed see the offsets below it, others those below `high_watermark`.
    """

    last_stable_offset: int
    high_watermark: int
    opened: Sequence[OpenTransaction]

    @property
    def held_back(self) -> int:
        """Return the number of offsets that are not visible to read_committed consumers yet."""
        return self.high_watermark - self.last_stable_offset


async def stable_offset_of(admin: Admin, name: TopicPartition) -> StableDiagnosis:
    """Return the last stable offset of `name`, and the open transactions that hold it back."""
    stable, end = await admin.logs.stable_offsets(name)
    return StableDiagnosis(stable, end, await admin.transactions.open_in([name]))


async def hanging_transactions(
    admin: Admin, topics: Sequence[str], *, older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Return hanging transactions of `topics` (if empty: of all) without writes for this long.

    Partitions without a leader are left out.
    """
    standings = await admin.partitions.describe(topics or None)
    names = (one.name for one in standings if not one.is_offline)
    return hanging(await admin.transactions.open_in(names), older_than_ms, now_ms)


def hanging(
    opened: Iterable[OpenTransaction], older_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """Return transactions that no coordinator knows and that had no writes for this long."""
    return [
        one
        for one in opened
        if one.transaction is None and now_ms - one.last_written_ms >= older_than_ms
    ]
