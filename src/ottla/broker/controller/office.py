"""One term of office of the controller: takes office in the order the papers give, then works.

All that happens goes through one queue (`jobs.py`). What is decided for many partitions at once
is written in few transactions and told to each broker in one message of each kind (P26).
"""

import logging
from collections.abc import Callable, Iterable

from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller, check_registration
from ottla.broker.controller.chronicle import Chronicle
from ottla.broker.controller.context import Context, RulesOf
from ottla.broker.controller.deciding import Decide, Deciding
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.messages import Letterhead
from ottla.broker.controller.reachability import Reachability
from ottla.broker.controller.reading import read_brokers
from ottla.broker.controller.reports import Reports
from ottla.broker.controller.sender import Deliver, Sender
from ottla.broker.controller.silence import Reaches
from ottla.broker.controller.writing import Deposed
from ottla.controller.change import Change, Rules
from ottla.controller.election import found_cause, lose, settle
from ottla.coordination.store import BadVersion, Delete, NoNode, Operation, Store
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, PartitionImage
from ottla.metadata.loader import load_topics

_log = logging.getLogger(__name__)


class Office(Deciding, Reports):
    """What the controller knows and does while `controller_epoch` is the newest.

    `on_deposed` is called when another is in office, `on_isolated` when no other broker can be
    reached, and so this one is not the one to decide.
    """

    def __init__(
        self,
        store: Store,
        broker_id: BrokerId,
        controller_epoch: int,
        chronicle: Chronicle,
        rules_of: RulesOf,
        deliver: Deliver,
        reaches: Reaches,
        answers: Reaches,
        *,
        session_ms: int,
        on_deposed: Callable[[], None],
        on_isolated: Callable[[], None],
    ) -> None:
        super().__init__(store, controller_epoch, Context(rules_of), chronicle)
        self.jobs = Jobs(self.repair, on_deposed)
        self.deliver = deliver
        self.letterhead = Letterhead(broker_id, controller_epoch)
        self.reachability = Reachability(
            self, reaches, answers, patience_ms=session_ms, on_isolated=on_isolated
        )
        self._broker_id = broker_id
        # Why registrations were ended before their sessions, until that is acted on.
        self._fenced: dict[BrokerId, str] = {}
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
        live, own_id = context.live, self._broker_id
        await self.decide(
            context.names(),
            self._settling(unclean, lambda partition: found_cause(partition, live, own_id)),
        )
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
        self.reachability.stop()
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
        cause = self._what_happened(gone, come)
        _log.info("controller: %s", cause)
        affected = self.context.hosted_by({*gone, *come, *unclean})
        await self.decide(affected, self._settling(unclean, lambda _partition: cause))
        await self._forget_unclean(unclean)
        self._follow_brokers()
        for sender in self.senders.values():
            sender.brokers()
        if come:
            self._tell_come()

    def _tell_come(self) -> None:
        for callback in self.on_come:
            callback()

    def _settling(
        self, lossy: Iterable[BrokerId], cause_of: Callable[[PartitionImage], str]
    ) -> Decide:
        context, doubtful, live = self.context, list(lossy), self.context.live

        def decide(name: TopicPartition, partition: PartitionImage, rules: Rules) -> Change | None:
            candidates = context.live_for(name, live)
            return lose(partition, doubtful, candidates, rules, cause=cause_of(partition))

        return decide

    async def settle(self, names: Iterable[TopicPartition], cause: str) -> None:
        """Bring partitions in line with who lives."""
        context, live = self.context, self.context.live
        await self.decide(
            names,
            lambda name, partition, rules: settle(
                partition, context.live_for(name, live), rules, cause=cause
            ),
        )

    def _follow_brokers(self) -> None:
        """Have a sender for each life of each live broker."""
        brokers = self.context.brokers
        for broker_id, sender in list(self.senders.items()):
            now = brokers.get(broker_id)
            if now is None or now.epoch != sender.broker.epoch:
                sender.stop()
                self.reachability.forget(broker_id)
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

    # -- what brokers report

    def deposed(self) -> None:
        """See `Reports`: the store says whether it is so."""
        self.jobs.once("check", self.check_epoch)

    def deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`."""
        self.on_deleted(broker, names)

    def refused(self, broker: BrokerImage) -> None:
        """See `Reports`: such a broker is dead, or has to say that it is not."""
        why = f"broker {broker.id} died: nobody listens where it was"
        self.jobs.once(f"refused by {broker.id}", lambda: self.fence(broker, why))

    def sending(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        if broker.id != self._broker_id:
            self.reachability.sending(broker)

    def answered(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        self.reachability.answered(broker)

    async def fence(self, broker: BrokerImage, why: str) -> None:
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
            _log.warning("the registration of broker %d is ended: %s", broker.id, why)
            self._fenced[broker.id] = why
        except (BadVersion, NoNode) as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise Deposed from error
        await self.on_brokers()

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`: these replicas count as dead until their broker starts anew."""
        self.context.offline |= {(name, broker.id): None for name in names}
        cause = f"broker {broker.id} cannot use its disk"
        self.jobs.once(f"failed {broker.id} {names[0]}", lambda: self.settle(names, cause))

    async def check_epoch(self) -> None:
        """Raise Deposed if another controller has taken office."""
        try:
            await self.store.multi([check_controller(self.epoch)])
        except BadVersion as error:
            raise Deposed from error

    def _what_happened(self, gone: list[BrokerId], come: list[BrokerId]) -> str:
        parts = [self._fenced.pop(broker, f"broker {broker} died") for broker in gone]
        parts += [f"broker {broker} came" for broker in come]
        return ", ".join(parts) or "a broker may have lost records"
