"""Waits for groups of a broker in this process, without polling; says why a wait has failed.

To be used on the broker's event loop.
"""

import asyncio
from collections.abc import Callable, Iterable

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.broker.handlers.decisions import described_rebalance
from ottla.broker.partitions.waiters import Woken
from ottla.broker.process.parts import Parts
from ottla.diagnosis.rebalances import rebalance_lines
from ottla.group.model.turn import GroupDecision
from ottla.testing.group_view import GroupView, all_groups, has_unread, shard_of, view

# Returns what a wait still lacks; None if nothing.
Check = Callable[[], str | None]

# How many rebalances and partitions the story of a failed wait shows.
_REBALANCES_SHOWN = 5
_PARTITIONS_SHOWN = 20


class GroupProgress(Woken):
    """The waits on one broker.

    All waits are checked once in each turn of the loop in which a group, a topic or the high
    watermark of a partition has changed.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.runtime)
        self._parts = parts
        self._waits: dict[asyncio.Future[None], Check] = {}
        parts.groups.decided.subscribe(self._on_decision)
        parts.metadata.image_changed.subscribe(self._on_change)

    async def until(self, check: Check, groups: Iterable[str], timeout_s: float) -> None:
        """Return when `check` returns None.

        Raises TimeoutError, which says what is missing and what happened to `groups`, or to
        all groups if there are none.
        """
        if check() is None:
            return
        done = self._runtime.loop.create_future()
        self._waits[done] = check
        self._attend()
        try:
            async with asyncio.timeout(timeout_s):
                await done
        except TimeoutError:
            if (lacking := check()) is not None:
                lines = [f"after {timeout_s:g} s: {lacking}"]
                for group_id in groups or [one.group_id for one in all_groups(self._parts)]:
                    lines += story(self._parts, group_id)
                raise TimeoutError("\n".join(lines)) from None
        finally:
            del self._waits[done]
            if not self._waits:
                for partition in self._parts.replication.partitions:
                    partition.waiters.pop(self, None)

    def _on_decision(self, _decision: GroupDecision) -> None:
        self._on_change()

    def _on_change(self) -> None:
        if self._waits:
            self.wake()

    def _look(self) -> None:
        for done, check in list(self._waits.items()):
            if not done.done() and check() is None:
                done.set_result(None)
        if self._waits:
            self._attend()

    def _attend(self) -> None:
        """Be woken by every partition, also by those of new topics."""
        for partition in self._parts.replication.partitions:
            if self not in partition.waiters:
                partition.add_waiter(self)


def lacks_assignment(
    parts: Parts, group_id: str, partitions: int, members: int | None
) -> str | None:
    """Return why a group does not have so many partitions assigned, to so many members."""
    group = view(parts, group_id)
    wanted = counted(partitions, "partition")
    if group is None:
        return f"there is no group {group_id!r} yet: no member has joined"
    if members is not None and len(group.members) != members:
        return f"group {group_id!r} has {counted(len(group.members), 'member')}, not {members}"
    if not group.is_settled:
        return f"group {group_id!r} is {group.state}: not every member has its assignment"
    if len(group.partitions) != partitions:
        return f"group {group_id!r} has {len(group.partitions)} of {wanted} assigned"
    return None if _is_stored(parts, group_id) else f"group {group_id!r} is not on disk yet"


def lacks_consumption(parts: Parts, group_id: str, topic: str) -> str | None:
    """Return why a group has not consumed all records of a topic."""
    image = parts.cluster.view.image.topic(topic)
    if image is None:
        return f"there is no topic {topic!r} yet"
    names = [TopicPartition(topic, index) for index in range(len(image.partitions))]
    group = view(parts, group_id)
    if group is None:
        group = GroupView(group_id, "Dead", is_settled=False, members={}, positions={})
    unread = [name for name in names if _is_unread(parts, name, group.positions.get(name))]
    if unread:
        return f"group {group_id!r} has not consumed {', '.join(map(str, unread))} to the end"
    return None if _is_stored(parts, group_id) else f"commits of {group_id!r} are not on disk yet"


def lacks_rest(parts: Parts) -> str | None:
    """Return what the broker still does; see `Broker.until_idle`."""
    for partition in parts.replication.partitions:
        if partition.log.producers.open_transactions:
            return f"a transaction is open in {partition.topic_partition}"
        if partition.high_watermark < partition.log_end_offset:
            return f"records of {partition.topic_partition} are not committed yet"
    for group in all_groups(parts):
        if group.members and not group.is_settled:
            return f"group {group.group_id!r} is {group.state}: it rebalances"
        for name in sorted(group.partitions):
            if _is_unread(parts, name, group.positions.get(name)):
                return f"group {group.group_id!r} has not consumed {name} to the end"
    return None


def story(parts: Parts, group_id: str) -> list[str]:
    """Describe a group in lines: members, latest rebalances, committed and end offsets."""
    group = view(parts, group_id)
    if group is None:
        return [f"group {group_id}: does not exist"]
    lines = [f"group {group_id}: {group.state}, {counted(len(group.members), 'member')}"]
    for member_id, member in sorted(group.members.items()):
        held = ", ".join(map(str, sorted(member.partitions))) or "no partitions"
        late = f"; it {member.lacks}" if member.lacks else ""
        lines.append(f"  {member_id} at {member.host.removeprefix('/')}: {held}{late}")
    flights = parts.groups.flights.of(group_id)[-_REBALANCES_SHOWN:]
    for flight in flights:
        first, *rest = rebalance_lines(described_rebalance(flight))
        lines.append(f"  rebalance {first}")
        lines += [f"    {line}" for line in rest]
    names = sorted({*group.positions, *group.partitions})
    for name in names[:_PARTITIONS_SHOWN]:
        position, end = group.positions.get(name), _end(parts, name)
        lines.append(f"  {name}: committed {_or_none(position)}, end offset {_or_none(end)}")
    if len(names) > _PARTITIONS_SHOWN:
        lines.append(f"  and {len(names) - _PARTITIONS_SHOWN} more partitions")
    return lines


def _is_unread(parts: Parts, name: TopicPartition, position: int | None) -> bool:
    partition = parts.replication.partitions.find(name.topic, name.partition)
    return partition is not None and has_unread(partition, position)


def _is_stored(parts: Parts, group_id: str) -> bool:
    """Whether all records of the group's shard are committed, and its answers are sent."""
    shard = shard_of(parts, group_id)
    return shard is None or shard.partition.high_watermark == shard.partition.log_end_offset


def _end(parts: Parts, name: TopicPartition) -> int | None:
    partition = parts.replication.partitions.find(name.topic, name.partition)
    return None if partition is None else partition.log_end_offset


def _or_none(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
