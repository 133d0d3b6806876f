"""Laws that hold in every broker, and between brokers, at every moment; looked at often.

Answers to clients are judged by the checker of histories.
"""

from collections.abc import Iterator

from ottla.broker.partitions.partition import Partition
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World
from verify.simulation.judging.replicas import StoredState, records, state_of

# What a law can depend on of one copy.
_Marks = tuple[object, ...]


def _marks(partition: Partition) -> _Marks:
    log = partition.log
    return (
        log,
        log.flush_state.recovery_point,
        partition.log_start_offset,
        partition.high_watermark,
        partition.log_end_offset,
        partition.leader_epoch,
        partition.leader is None,
        partition.group_commit,
        tuple(log.leader_epochs.entries),
    )


class Invariants:
    """Remembers what must not go back. `look` reports each violation to the world."""

    def __init__(self, world: World, topics: dict[str, int]) -> None:
        self._world = world
        self._topics = topics
        # The highest high watermark of each incarnation's partitions.
        self._high_watermarks: dict[tuple[str, int, str], int] = {}
        # Who led each partition in each leader epoch.
        self._leaders: dict[tuple[str, int], int] = {}
        self._states: dict[str, StoredState] = {}
        # Up to which offset the copies on two machines are known to be equal.
        self._compared: dict[tuple[str, int, int, int, int], int] = {}
        # How each copy was when it was last looked at, by machine: its process, and the rest.
        self._seen: dict[int, tuple[int, dict[Partition, _Marks]]] = {}
        # What was last looked at of all copies of a partition.
        self._seen_across: dict[str, tuple[object, ...]] = {}

    def look(self) -> None:
        """Check all brokers that serve, as far as anything of them is different."""
        copies: dict[tuple[str, int], dict[int, Partition]] = {}
        marks: dict[Partition, _Marks] = {}
        for machine in self._world.machines.values():
            if machine.is_ready and machine.broker is not None:
                before = self._seen.get(machine.broker_id)
                known = before[1] if before and before[0] == machine.starts else {}
                now: dict[Partition, _Marks] = {}
                for partition in machine.broker.partitions:
                    if partition.failure is None:
                        now[partition] = _marks(partition)
                        if known.get(partition) != now[partition]:
                            self._look_at(machine, partition)
                        at = partition.topic_partition
                        copies.setdefault((at.topic, at.partition), {})[machine.broker_id] = (
                            partition
                        )
                self._seen[machine.broker_id] = (machine.starts, now)
                marks |= now
        for topic, count in self._topics.items():
            for number in range(count):
                here = copies.get((topic, number), {})
                self._look_across(topic, number, here, [marks[copy] for copy in here.values()])

    def _look_at(self, machine: Machine, partition: Partition) -> None:
        """One replica by itself."""
        log = partition.log
        name = str(partition.topic_partition)
        where = f"{machine.host} {name}"
        begin, end = partition.log_start_offset, partition.log_end_offset
        high_watermark = partition.high_watermark
        if not begin <= high_watermark <= end:
            self._world.fail(f"offsets: {where}: {begin} <= {high_watermark} <= {end} is not so")
        # A follower may know a high watermark above what it has flushed itself.
        if (
            partition.group_commit
            and partition.leader is not None
            and high_watermark > log.flush_state.durable_offset
        ):
            what = f"high watermark {high_watermark} above flushed {log.flush_state.durable_offset}"
            self._world.fail(f"unflushed: {where}: {what}")
        key = (machine.host, machine.starts, name)
        before = self._high_watermarks.get(key, 0)
        if high_watermark < before:
            self._world.fail(f"high watermark back: {where}: {before} to {high_watermark}")
        self._high_watermarks[key] = high_watermark
        epochs = [epoch for epoch, _ in log.leader_epochs.entries]
        if epochs != sorted(set(epochs)):
            self._world.fail(f"epochs: {where}: {epochs} do not rise")
        if partition.leader is not None:
            known = self._leaders.setdefault((name, partition.leader_epoch), machine.broker_id)
            if known != machine.broker_id:
                what = f"{known} and {machine.broker_id} lead in epoch {partition.leader_epoch}"
                self._world.fail(f"two leaders: {name}: {what}")

    def _look_across(
        self, topic: str, number: int, replicas: dict[int, Partition], marks: list[_Marks]
    ) -> None:
        """All replicas of a partition, and what the store says of it."""
        state = state_of(self._world, topic, number)
        name = f"{topic}-{number}"
        now = (state, tuple(replicas), *marks)
        if state is None or self._seen_across.get(name) == now:
            return
        self._seen_across[name] = now
        before = self._states.get(name)
        if before is not None and before.version > state.version:
            self._world.fail(f"store back: {name}: version {before.version} to {state.version}")
        if before is None or before.leader_epoch < state.leader_epoch:
            self._world.count("election")
            if len(state.isr) == 1 and len(state.replicas) > 1:
                self._world.count("elected alone")
        self._states[name] = state
        leader = replicas.get(state.leader)
        if (
            leader is not None
            and leader.leader is not None
            and leader.leader_epoch == state.leader_epoch
        ):
            self._members_have_all(name, state, leader, replicas)
        self._copies_agree(name, replicas)

    def _members_have_all(
        self,
        name: str,
        state: StoredState,
        leader: Partition,
        replicas: dict[int, Partition],
    ) -> None:
        """Every in-sync replica holds what is committed (strong ISR)."""
        for broker_id in state.isr:
            member = replicas.get(broker_id)
            if member is not None and member.own_end < leader.high_watermark:
                what = f"{broker_id} holds {member.own_end} of {leader.high_watermark}"
                self._world.fail(f"weak ISR: {name}: {what}, leader {state.leader}")

    def _copies_agree(self, name: str, replicas: dict[int, Partition]) -> None:
        """Below the lesser high watermark two copies are equal, byte for byte."""
        for one, other in _pairs(replicas):
            starts = self._world.machines[one].starts, self._world.machines[other].starts
            key = (name, one, other, *starts)
            left, right = replicas[one], replicas[other]
            begin = max(self._compared.get(key, 0), left.log_start_offset, right.log_start_offset)
            end = min(left.high_watermark, right.high_watermark)
            if begin >= end:
                continue
            self._compared[key] = end
            if records(left, begin, end) != records(right, begin, end):
                what = f"{one} and {other} differ between {begin} and {end}"
                self._world.fail(f"divergence: {name}: {what}, below both high watermarks")


def _pairs(replicas: dict[int, Partition]) -> Iterator[tuple[int, int]]:
    ids = sorted(replicas)
    return ((one, other) for place, one in enumerate(ids) for other in ids[place + 1 :])
