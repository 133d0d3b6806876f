"""One term of office of the controller: takes office in the order the papers give, then works.

All that happens goes through one queue (`jobs.py`). What is decided for many partitions at once
is written in few transactions and told to each broker in one message of each kind (P26).
"""

import logging
from collections.abc import Callable, Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.context import Context, RulesOf
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.messages import Letterhead
from ottla.broker.controller.reading import read_brokers
from ottla.broker.controller.sender import Deliver, Reports, Sender
from ottla.broker.controller.writing import Deposed, Planned, write_changes
from ottla.broker.registration import check_controller, check_registration
from ottla.controller.change import Change, How
from ottla.controller.election import lose, settle
from ottla.controller.reassignment import complete, is_moving
from ottla.coordination.store import BadVersion, Delete, NoNode, Operation, Store
from ottla.metadata import paths
from ottla.metadata.decisions import Decision, DecisionKind, Decisions
from ottla.metadata.image import NO_LEADER, BrokerImage, PartitionImage
from ottla.metadata.loader import load_topics

_log = logging.getLogger(__name__)

Decide = Callable[[TopicPartition, PartitionImage], Change | None]


class Office(Reports):
    """What the controller knows and does while `controller_epoch` is the newest."""

    def __init__(
        self,
        store: Store,
        broker_id: BrokerId,
        controller_epoch: int,
        clock: Clock,
        decisions: Decisions,
        rules_of: RulesOf,
        deliver: Deliver,
        on_deposed: Callable[[], None],
    ) -> None:
        self.store = store
        self.epoch = controller_epoch
        self.context = Context(rules_of)
        self.jobs = Jobs(self.repair, on_deposed)
        self.senders: dict[BrokerId, Sender] = {}
        # Elections that lost records, since this term began.
        self.unclean_elections = 0
        self._broker_id = broker_id
        self._clock = clock
        self._decisions = decisions
        self.deliver = deliver
        self.letterhead = Letterhead(broker_id, controller_epoch)
        # Deletions go on when replicas are gone, and when brokers come.
        self.on_deleted: Callable[[BrokerImage, list[TopicPartition]], None] = lambda _b, _n: None
        self.on_come: list[Callable[[], None]] = []
        self.on_stop: list[Callable[[], None]] = []

    async def load(self) -> None:
        """Read all there is, put it in order, and tell all brokers. Also repairs after doubt."""
        context = self.context
        brokers, unclean = await read_brokers(self.store)
        names = await self.store.children(paths.TOPICS)
        context.deleting = dict.fromkeys(await self.store.children(paths.DELETE_TOPICS))
        context.topics = await load_topics(self.store, names)
        context.brokers = brokers
        self._forget_old_lives()
        await self.decide(context.names(), self._settling(unclean, "a controller took office"))
        await self._forget_unclean(unclean)

    async def repair(self) -> None:
        """Know the store anew after an outcome that is not known."""
        await self.load()
        self._follow_brokers()
        for sender in self.senders.values():
            sender.everything()
        self._tell_come()

    def tell_everybody(self) -> None:
        """Begin to send; each broker is first told everything."""
        self._follow_brokers()

    def stop(self) -> None:
        """Resign: decide and send no more."""
        self.jobs.stop()
        for sender in self.senders.values():
            sender.stop()
        self.senders.clear()
        for callback in self.on_stop:
            callback()

    # -- brokers

    async def on_brokers(self) -> None:
        """The set of live brokers may have changed (P30)."""
        brokers, unclean = await read_brokers(self.store)
        known = self.context.brokers
        gone = [broker for broker in known if broker not in brokers]
        come = [
            broker.id
            for broker in brokers.values()
            if broker.id not in known or known[broker.id].epoch != broker.epoch
        ]
        if not (gone or come or unclean):
            return
        self.context.brokers = brokers
        self._forget_old_lives()
        cause = _what_happened(gone, come)
        _log.info("controller: %s", cause)
        affected = self.context.hosted_by({*gone, *come, *unclean})
        await self.decide(affected, self._settling(unclean, cause))
        await self._forget_unclean(unclean)
        self._follow_brokers()
        for sender in self.senders.values():
            sender.brokers()
        if come:
            self._tell_come()

    def _tell_come(self) -> None:
        for callback in self.on_come:
            callback()

    def _settling(self, lossy: Iterable[BrokerId], cause: str) -> Decide:
        context, doubtful, live = self.context, list(lossy), self.context.live

        def decide(name: TopicPartition, partition: PartitionImage) -> Change | None:
            candidates = context.live_for(name, live)
            return lose(partition, doubtful, candidates, context.rules(name.topic), cause=cause)

        return decide

    def _follow_brokers(self) -> None:
        """Have a sender for each life of each live broker."""
        brokers = self.context.brokers
        for broker_id, sender in list(self.senders.items()):
            now = brokers.get(broker_id)
            if now is None or now.epoch != sender.broker.epoch:
                sender.stop()
                del self.senders[broker_id]
        # This broker first: it learns here where the others are.
        for broker_id in sorted(brokers, key=lambda broker: (broker != self._broker_id, broker)):
            if broker_id not in self.senders:
                broker = brokers[broker_id]
                sender = Sender(broker, self.context, self.letterhead, self.deliver, self)
                self.senders[broker_id] = sender
                sender.start()

    def _forget_old_lives(self) -> None:
        context = self.context
        context.stopping = {
            broker: epoch
            for broker, epoch in context.stopping.items()
            if broker in context.brokers and context.brokers[broker].epoch == epoch
        }
        # A broker that starts anew tries its disks anew.
        known = {b: sender.broker.epoch for b, sender in self.senders.items()}
        context.offline = {
            (name, broker): None
            for name, broker in context.offline
            if broker in context.brokers and context.brokers[broker].epoch == known.get(broker)
        }

    async def _forget_unclean(self, unclean: dict[BrokerId, int]) -> None:
        """What follows from these stops is written: the marks can go, unless they are renewed."""
        for broker, version in unclean.items():
            operations: list[Operation] = [
                check_controller(self.epoch),
                Delete(paths.unclean_stop(broker), version),
            ]
            try:
                await self.store.multi(operations)
            except (BadVersion, NoNode) as error:
                if error.path == paths.CONTROLLER_EPOCH:
                    raise Deposed from error
                self.jobs.once("brokers", self.on_brokers)

    # -- decisions

    async def decide(self, names: Iterable[TopicPartition], decide: Decide) -> list[Planned]:
        """Decide for each partition, write, and tell; return what was written.

        A partition whose state somebody else changed meanwhile is read and decided anew. Raises
        Deposed, StoreUnavailable.
        """
        pending = list(names)
        all_written: list[Planned] = []
        while pending:
            planned: list[Planned] = []
            for name in pending:
                partition = self.context.partition(name)
                change = None if partition is None else decide(name, partition)
                if partition is not None and change is not None:
                    planned.append(Planned(name, partition, change))
            written, refused = await write_changes(self.store, self.context, self.epoch, planned)
            all_written += written
            pending = [p.name for p in refused]
            if pending:
                await self.reread(sorted({name.topic for name in pending}))
        self._record(all_written)
        self._tell(all_written)
        return all_written

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
                for sender in self.senders.values():
                    sender.partitions(new)

    async def complete_moves(self, names: Iterable[TopicPartition]) -> None:
        """End the moves whose new replicas are all in sync."""
        context, live = self.context, self.context.live
        moving = [n for n in names if (p := context.partition(n)) is not None and is_moving(p)]
        await self.decide(
            moving, lambda name, partition: complete(partition, live, context.rules(name.topic))
        )

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

    def _record(self, written: list[Planned]) -> None:
        for name, before, change in written:
            if change.how is How.UNCLEAN:
                self.unclean_elections += 1
                _log.warning(
                    "unclean election of %d for %s: %s; records may be lost",
                    change.after.leader,
                    name,
                    change.evidence,
                )
            elif change.after.leader == NO_LEADER:
                _log.warning("%s is offline (NoReplicaOnline): %s", name, change.evidence)
            led_by = "nobody" if before.leader == NO_LEADER else str(before.leader)
            seen = f"led by {led_by} with ISR {list(before.isr)} before; {change.evidence}"
            how = "" if change.how is None else f" ({change.how})"
            self._decisions.record(
                Decision(
                    _kind(before, change),
                    name,
                    self._broker_id,
                    change.after.leader_epoch,
                    change.cause,
                    seen + how,
                    change.setting,
                    self._clock.now_ms(),
                )
            )

    # -- what brokers report

    def deposed(self) -> None:
        """See `Reports`: the store says whether it is so."""
        self.jobs.once("check", self.check_epoch)

    def deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`."""
        self.on_deleted(broker, names)

    def refused(self, broker: BrokerImage) -> None:
        """See `Reports`: such a broker is dead, or has to say that it is not."""
        self.jobs.once(f"refused by {broker.id}", lambda: self.fence(broker))

    async def fence(self, broker: BrokerImage) -> None:
        """End a registration before its session does: epochs keep it safe if this is wrong.

        Who is alive after all sees its node go, and registers anew.
        """
        known = self.context.brokers.get(broker.id)
        if known is None or known.epoch != broker.epoch:
            return
        operations: list[Operation] = [
            check_controller(self.epoch),
            check_registration(broker.id, broker.epoch),
            Delete(paths.broker(broker.id)),
        ]
        try:
            await self.store.multi(operations)
            _log.warning("broker %d cannot be reached any more: taken for dead", broker.id)
        except (BadVersion, NoNode) as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise Deposed from error
        await self.on_brokers()

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`: these replicas count as dead until their broker starts anew."""
        self.context.offline |= {(name, broker.id): None for name in names}
        cause = f"broker {broker.id} cannot use its disk"

        async def settle_failed() -> None:
            live, context = self.context.live, self.context
            await self.decide(
                names,
                lambda name, partition: settle(
                    partition, context.live_for(name, live), context.rules(name.topic), cause=cause
                ),
            )

        self.jobs.once(f"failed {broker.id} {names[0]}", settle_failed)

    async def check_epoch(self) -> None:
        """Raise Deposed if another controller has taken office."""
        try:
            await self.store.multi([check_controller(self.epoch)])
        except BadVersion as error:
            raise Deposed from error


def _kind(before: PartitionImage, change: Change) -> DecisionKind:
    if change.after.leader == NO_LEADER:
        return DecisionKind.NO_LEADER
    if change.how is not None:
        return DecisionKind.ELECTED
    grown = len(change.after.isr) > len(before.isr)
    return DecisionKind.ISR_EXPANDED if grown else DecisionKind.ISR_SHRUNK


def _what_happened(gone: list[BrokerId], come: list[BrokerId]) -> str:
    parts = [f"broker {broker} died" for broker in gone]
    parts += [f"broker {broker} came" for broker in come]
    return ", ".join(parts) or "a broker may have lost records"
