"""Decides on many partitions at once, writes the changes in few transactions, sends them (P26)."""

import logging
from collections.abc import Callable, Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.context import Context
from ottla.broker.controller.sender import Senders
from ottla.broker.controller.store_access import Planned, write_changes
from ottla.controller.election import Change, How, Rules, settle
from ottla.controller.reassignment import complete
from ottla.coordination.interface.store import Store
from ottla.metadata.decisions import Decision, DecisionKind, Decisions
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.loader import load_topics

_log = logging.getLogger(__name__)


class DecisionLog:
    """Records the decisions of one controller epoch, and counts unclean elections."""

    def __init__(self, broker_id: BrokerId, clock: Clock, decisions: Decisions) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self._decisions = decisions
        # Unclean elections in this controller epoch, which may have lost records.
        self.unclean_elections = 0

    def record(self, written: Iterable[Planned]) -> None:
        """Record changes that are now in the store."""
        now_ms = self._clock.now_ms()
        for planned in written:
            self._warn(planned)
            self._decisions.record(self._decision(planned, now_ms))

    def created(self, partitions: Iterable[tuple[TopicPartition, PartitionImage]]) -> None:
        """Record partitions that the controller sees for the first time."""
        now_ms = self._clock.now_ms()
        for name, partition in partitions:
            leads = f"broker {partition.leader} leads"
            if partition.leader == NO_LEADER:
                leads = "none of these is alive to lead"
            evidence = f"replicas {list(partition.replicas)}, ISR {list(partition.isr)}; {leads}"
            self._decisions.record(
                Decision(
                    DecisionKind.CREATED,
                    name,
                    self._broker_id,
                    partition.leader_epoch,
                    f"partition {name.partition} of topic {name.topic} was created",
                    evidence,
                    None,
                    now_ms,
                )
            )

    def _warn(self, planned: Planned) -> None:
        name, change = planned.name, planned.change
        if change.how is How.UNCLEAN:
            self.unclean_elections += 1
            _log.warning(
                "unclean election of %d for %s: %s; records may be lost (%d in this term)",
                change.after.leader,
                name,
                change.evidence,
                self.unclean_elections,
            )
        elif change.after.leader == NO_LEADER:
            _log.warning("%s is offline (NoReplicaOnline): %s", name, change.evidence)

    def _decision(self, planned: Planned, now_ms: int) -> Decision:
        name, before, change = planned
        led_by = "nobody" if before.leader == NO_LEADER else str(before.leader)
        seen = f"led by {led_by} with ISR {list(before.isr)} before; {change.evidence}"
        how = "" if change.how is None else f" ({change.how})"
        return Decision(
            _kind(before, change),
            name,
            self._broker_id,
            change.after.leader_epoch,
            change.cause,
            seen + how,
            change.setting,
            now_ms,
        )


def _kind(before: PartitionImage, change: Change) -> DecisionKind:
    if change.after.leader == NO_LEADER:
        return DecisionKind.NO_LEADER
    if change.how is not None:
        return DecisionKind.ELECTED
    grown = len(change.after.isr) > len(before.isr)
    return DecisionKind.ISR_EXPANDED if grown else DecisionKind.ISR_SHRUNK


# Decides on a change from a partition's state and its topic's rules; None for no change.
Decide = Callable[[TopicPartition, PartitionImage, Rules], Change | None]


class PartitionChanges:
    """Makes all changes of partition states in one controller epoch."""

    def __init__(
        self,
        store: Store,
        controller_epoch: int,
        context: Context,
        senders: Senders,
        decision_log: DecisionLog,
    ) -> None:
        self.context = context
        self._store = store
        self._epoch = controller_epoch
        self._senders = senders
        self._decision_log = decision_log

    async def decide(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        """Call `decide` for each partition, write and send the changes, and return them.

        If a leader changed the state of a partition meanwhile, the partition is read and decided
        again. Raises Deposed, StoreUnavailable.
        """
        pending = list(names)
        all_written: list[Planned] = []
        while pending:
            planned = self._plan(pending, decide)
            written, refused = await write_changes(self._store, self.context, self._epoch, planned)
            all_written += written
            pending = [p.name for p in refused]
            if pending:
                await self.reread(sorted({name.topic for name in pending}))
        self._decision_log.record(all_written)
        self._senders.changes(all_written)
        return all_written

    async def settle(self, names: Iterable[TopicPartition], cause: str) -> None:
        """Elect leaders and adjust ISRs of partitions, according to the live brokers."""
        context, live = self.context, self.context.live
        await self.decide(
            names,
            lambda name, partition, rules: settle(
                partition, context.live_for(name, live), rules, cause=cause
            ),
        )

    def _plan(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        planned: list[Planned] = []
        # Kept by topic, because deriving rules from settings takes longer than an election.
        rules: dict[str, Rules] = {}
        for name in names:
            partition = self.context.partition(name)
            if partition is None:
                continue
            if name.topic not in rules:
                rules[name.topic] = self.context.rules(name.topic)
            change = decide(name, partition, rules[name.topic])
            if change is not None:
                planned.append(Planned(name, partition, change))
        return planned

    async def reread(self, topics: list[str]) -> None:
        """Read topics from the store again, and send new partitions to all brokers."""
        found = await load_topics(self._store, topics)
        context = self.context
        for name in topics:
            before = len(context.topics[name].partitions) if name in context.topics else 0
            if name not in found:
                context.topics.pop(name, None)
                continue
            context.topics[name] = found[name]
            if len(found[name].partitions) > before:
                added = range(before, len(found[name].partitions))
                new = [TopicPartition(name, index) for index in added]
                self.note_created(new)
                self._senders.partitions(new)

    def note_created(self, names: Iterable[TopicPartition]) -> None:
        """Record that partitions were created, with their first state."""
        known = ((name, self.context.partition(name)) for name in names)
        self._decision_log.created((name, state) for name, state in known if state is not None)

    async def complete_moves(self, names: Iterable[TopicPartition]) -> None:
        """Complete the reassignments whose new replicas are all in sync."""
        context, live = self.context, self.context.live
        moving = [n for n in names if (p := context.partition(n)) is not None and p.is_moving]
        await self.decide(moving, lambda _name, partition, rules: complete(partition, live, rules))
