"""Finds transactions that hold back read_committed consumers or that no coordinator ends."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.groups import SHARE
from ottla.client.admin.transactions import OpenTransaction

# Groups whose offsets are requested at the same time.
_AT_ONCE = 50


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


@dataclass(frozen=True, slots=True)
class BlockingTransaction:
    """A transaction that read_committed consumers of a partition wait for.

    `since_ms` is when it began; if no coordinator knows it, when it last wrote. `held_back` counts
    the offsets that these consumers do not see. `groups` are those that have read all before it and
    committed that; other readers may be on their way there.
    """

    opened: OpenTransaction
    since_ms: int
    held_back: int
    groups: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """Return what ends the transaction."""
        known, partition = self.opened.transaction, self.opened.partition
        if known is None:
            return (
                "no coordinator knows it: if its producer is gone, `ottla txn abort --partition "
                f"{partition} --start-offset {self.opened.start_offset}`"
            )
        if known.state == "Ongoing":
            return f"if its producer is gone, `ottla txn abort {known.transactional_id}`"
        return (
            f"it is decided ({known.state}): broker {known.coordinator_id} writes its marker when "
            "the partition's leader answers"
        )


async def blocking_transactions(
    admin: Admin, topics: Sequence[str] = ()
) -> list[BlockingTransaction]:
    """Return the first open transaction of each partition that has one, the oldest first.

    Only those in `topics`; if empty, in all. Partitions without a leader are left out.
    """
    standings = await admin.partitions.describe(topics or None)
    opened = await admin.transactions.open_in(one.name for one in standings if not one.is_offline)
    first = {one.partition: one for one in reversed(opened)}
    if not first:
        return []
    ends = {name: await admin.logs.stable_offsets(name) for name in first}
    groups = await _groups_at(admin, {name: stable for name, (stable, _) in ends.items()})
    found = [
        BlockingTransaction(
            one,
            one.last_written_ms if one.transaction is None else one.transaction.start_ms,
            end - stable,
            groups.get(one.partition, ()),
        )
        for one in first.values()
        for stable, end in [ends[one.partition]]
    ]
    return sorted(found, key=lambda one: one.since_ms)


async def _groups_at(
    admin: Admin, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[str, ...]]:
    """Return the groups that have committed exactly these offsets."""
    found: dict[TopicPartition, tuple[str, ...]] = {}
    names = [one.group_id for one in await admin.groups.all() if one.kind.lower() != SHARE]
    for begin in range(0, len(names), _AT_ONCE):
        part = names[begin : begin + _AT_ONCE]
        answers = await asyncio.gather(*(admin.groups.offsets(group) for group in part))
        for group, committed in zip(part, answers, strict=True):
            for name, offset in offsets.items():
                if name in committed and committed[name].offset == offset:
                    found[name] = (*found.get(name, ()), group)
    return found
