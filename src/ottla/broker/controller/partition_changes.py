"""Decides for many partitions at once, writes the changes in few transactions, sends them (P26)."""

from collections.abc import Callable, Iterable

from ottla.base.ids import TopicPartition
from ottla.broker.controller.context import Context
from ottla.broker.controller.decision_log import DecisionLog
from ottla.broker.controller.senders import Senders
from ottla.broker.controller.store_writes import Planned, write_changes
from ottla.controller.change import Change, Rules
from ottla.controller.election import settle
from ottla.controller.reassignment import complete, is_moving
from ottla.coordination.interface.store import Store
from ottla.metadata.image import PartitionImage
from ottla.metadata.loader import load_topics

# Maps a partition's state and its topic's rules to a change; None leaves the state as it is.
Decide = Callable[[TopicPartition, PartitionImage, Rules], Change | None]


class PartitionChanges:
    """All changes that one controller epoch makes to partitions."""

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
        """Decide for each partition, write the changes and send them; return the written changes.

        A partition whose state its leader changed meanwhile is read and decided again. Raises
        Deposed, StoreUnavailable.
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
        """Give partitions leaders and ISRs among the live brokers."""
        context, live = self.context, self.context.live
        await self.decide(
            names,
            lambda name, partition, rules: settle(
                partition, context.live_for(name, live), rules, cause=cause
            ),
        )

    def _plan(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        planned: list[Planned] = []
        # By topic, because deriving the rules from settings takes longer than an election.
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
        """Read topics from the store; new partitions are sent to all brokers."""
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
        moving = [n for n in names if (p := context.partition(n)) is not None and is_moving(p)]
        await self.decide(moving, lambda _name, partition, rules: complete(partition, live, rules))
