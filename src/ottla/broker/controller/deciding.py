"""Decides for many partitions at once, writes it in few transactions, and has it told (P26)."""

from collections.abc import Callable, Iterable

from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.chronicle import Chronicle
from ottla.broker.controller.context import Context
from ottla.broker.controller.sender import Sender
from ottla.broker.controller.writing import Planned, write_changes
from ottla.controller.change import Change, Rules
from ottla.controller.reassignment import complete, is_moving
from ottla.coordination.store import Store
from ottla.metadata.image import PartitionImage
from ottla.metadata.loader import load_topics

# From a partition's state and the rules of its topic to what it is to be; None leaves it.
Decide = Callable[[TopicPartition, PartitionImage, Rules], Change | None]


class Deciding:
    """What a term of the controller does with partitions. Its senders are by broker."""

    def __init__(
        self, store: Store, controller_epoch: int, context: Context, chronicle: Chronicle
    ) -> None:
        self.store = store
        self.epoch = controller_epoch
        self.context = context
        self.senders: dict[BrokerId, Sender] = {}
        self._chronicle = chronicle

    async def decide(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        """Decide for each partition, write, and tell; return what was written.

        A partition whose state somebody else changed meanwhile is read and decided anew. Raises
        Deposed, StoreUnavailable.
        """
        pending = list(names)
        all_written: list[Planned] = []
        while pending:
            planned = self._plan(pending, decide)
            written, refused = await write_changes(self.store, self.context, self.epoch, planned)
            all_written += written
            pending = [p.name for p in refused]
            if pending:
                await self.reread(sorted({name.topic for name in pending}))
        self._chronicle.record(all_written)
        self._tell(all_written)
        return all_written

    def _plan(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        planned: list[Planned] = []
        # Worked out from settings, which takes longer than an election.
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
        """Know topics as the store has them now; new partitions are told to everybody."""
        found = await load_topics(self.store, topics)
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
                for sender in self.senders.values():
                    sender.partitions(new)

    def note_created(self, names: Iterable[TopicPartition]) -> None:
        """Have it on record that partitions were created, with the state they began in."""
        known = ((name, self.context.partition(name)) for name in names)
        self._chronicle.created((name, state) for name, state in known if state is not None)

    async def complete_moves(self, names: Iterable[TopicPartition]) -> None:
        """End the moves whose new replicas are all in sync."""
        context, live = self.context, self.context.live
        moving = [n for n in names if (p := context.partition(n)) is not None and is_moving(p)]
        await self.decide(moving, lambda _name, partition, rules: complete(partition, live, rules))

    def _tell(self, written: list[Planned]) -> None:
        names = [planned.name for planned in written]
        for broker_id, sender in self.senders.items():
            if broker_id in self.context.stopping:
                sender.metadata(names)
            else:
                sender.partitions(names)
        for name, before, change in written:
            for broker_id in before.replicas:
                if broker_id not in change.after.replicas and broker_id in self.senders:
                    stop = {name: change.after.leader_epoch}
                    self.senders[broker_id].stop_replicas(stop, delete=True)
