"""The active controller: one controller epoch, from its first read of the store to its end.

All events and requests go through one queue (`jobs.py`). Changes of many partitions are written in
few transactions and sent to each broker in one request of each kind (P26).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller, check_registration
from ottla.broker.controller.context import Context, RulesOf
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.messages import ControllerMessages
from ottla.broker.controller.partition_changes import Decide, DecisionLog, PartitionChanges
from ottla.broker.controller.reachability import Reachability, Reaches
from ottla.broker.controller.sender import Deliver, Senders
from ottla.broker.controller.store_access import Deposed, read_brokers
from ottla.controller.election import Change, Rules, found_cause, lose
from ottla.coordination.interface.store import BadVersion, Delete, NoNode, Operation, Store
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, PartitionImage
from ottla.metadata.loader import load_topics


class BrokerReports:
    """Implements `Reports` for one controller epoch; most reports become jobs.

    `check_epoch` checks in the store that this controller is not deposed; `fence` ends a
    registration.
    """

    def __init__(
        self,
        jobs: Jobs,
        changes: PartitionChanges,
        reachability: Reachability,
        check_epoch: Callable[[], Awaitable[None]],
        fence: Callable[[BrokerImage, str], Awaitable[None]],
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._reachability = reachability
        self._check_epoch = check_epoch
        self._fence = fence
        # Called with a broker and the replicas it has deleted: see `Reports.deleted`.
        self.on_deleted: list[Callable[[BrokerImage, dict[TopicPartition, int]], None]] = []

    def deposed(self) -> None:
        """See `Reports`. Queues a check in the store whether this controller is deposed."""
        self._jobs.once("check", self._check_epoch)

    def deleted(self, broker: BrokerImage, names: dict[TopicPartition, int]) -> None:
        """See `Reports`."""
        for callback in self.on_deleted:
            callback(broker, names)

    def refused(self, broker: BrokerImage) -> None:
        """See `Reports`. Fences the broker as dead; if it is alive, it registers again."""
        why = f"broker {broker.id} died: its address refuses connections"
        self._jobs.once(f"refused by {broker.id}", lambda: self._fence(broker, why))

    def sending(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        self._reachability.sending(broker)

    def answered(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        self._reachability.answered(broker)

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`. Treats the replicas as offline until their broker registers again."""
        self._changes.context.offline |= {(name, broker.id): None for name in names}
        cause = f"broker {broker.id} cannot use its disk"
        self._jobs.once(
            f"failed {broker.id} {names[0]}", lambda: self._changes.settle(names, cause)
        )


_log = logging.getLogger(__name__)


class ActiveController:
    """The state and actions of the controller while `epoch` is the newest controller epoch.

    `on_deposed` is called when another broker has become the controller. `on_isolated` is called
    when this broker reaches no other broker, so that another must become the controller.
    """

    def __init__(
        self,
        store: Store,
        broker_id: BrokerId,
        controller_epoch: int,
        decision_log: DecisionLog,
        rules_of: RulesOf,
        deliver: Deliver,
        reaches: Reaches,
        answers: Reaches,
        *,
        session_ms: int,
        on_deposed: Callable[[], None],
        on_isolated: Callable[[], None],
    ) -> None:
        self.store = store
        self.epoch = controller_epoch
        self.deliver = deliver
        self.context = context = Context(rules_of)
        self.messages = ControllerMessages(broker_id, controller_epoch)
        self.senders = senders = Senders(context, self.messages, deliver)
        self.decision_log = decision_log
        self.changes = PartitionChanges(store, controller_epoch, context, senders, decision_log)
        self.jobs = Jobs(self.repair, on_deposed)
        self.reachability = Reachability(
            broker_id,
            self.jobs,
            self.changes,
            senders,
            reaches,
            answers,
            patience_ms=session_ms,
            fence=self.fence,
            on_isolated=on_isolated,
        )
        self.reports = BrokerReports(
            self.jobs, self.changes, self.reachability, self.check_epoch, self.fence
        )
        self._broker_id = broker_id
        # The reasons for ending registrations early, kept until `on_brokers` logs them.
        self._fenced: dict[BrokerId, str] = {}
        # Called when brokers register, so that deletions and recoveries continue.
        self.on_come: list[Callable[[], None]] = []
        self.on_stop: list[Callable[[], None]] = []

    async def load(self) -> None:
        """Read the whole state from the store, and settle leader and ISR of every partition.

        This also repairs the context after a write whose outcome is unknown.
        """
        context = self.context
        brokers, unclean = await read_brokers(self.store)
        names = await self.store.children(paths.TOPICS)
        context.deleting = dict.fromkeys(await self.store.children(paths.DELETE_TOPICS))
        context.topics = await load_topics(self.store, names)
        context.brokers = brokers
        context.forget_registrations(self.senders.epochs())
        live, own_id = context.live, self._broker_id
        await self.changes.decide(
            context.names(),
            self._settling(unclean, lambda partition: found_cause(partition, live, own_id)),
        )
        await self._forget_unclean(unclean)

    async def repair(self) -> None:
        """Read the store again after a write with an unknown outcome."""
        await self.load()
        self.follow_brokers()
        self.senders.everything()
        self._call_come()

    def follow_brokers(self) -> None:
        """Keep a sender for each live broker; a new sender first sends everything."""
        for broker_id in self.senders.end_old():
            self.reachability.forget(broker_id)
        self.senders.begin_new(self.reports)

    def stop(self) -> None:
        """Resign: stop deciding and sending."""
        self.jobs.stop()
        self.reachability.stop()
        self.senders.stop()
        for callback in self.on_stop:
            callback()

    # -- brokers

    async def on_brokers(self) -> None:
        """Read the live brokers; if they changed, elect leaders and send the changes (P30)."""
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
        self.context.forget_registrations(self.senders.epochs())
        cause = self._what_happened(gone, come)
        _log.info("controller: %s", cause)
        affected = self.context.hosted_by({*gone, *come, *unclean})
        decide = self._settling(unclean, lambda _partition: cause)
        # First those that clients cannot use; the other ISRs only shrink.
        urgent = dict.fromkeys(self.context.led_by({*gone, *come}, affected))
        await self.changes.decide(urgent, decide)
        await self.changes.decide([name for name in affected if name not in urgent], decide)
        await self._forget_unclean(unclean)
        self.follow_brokers()
        self.senders.brokers()
        if come:
            self._call_come()

    def _call_come(self) -> None:
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

    async def _forget_unclean(self, unclean: dict[BrokerId, int]) -> None:
        """Delete the marks of unclean stops that were handled, unless they were renewed."""
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

    async def fence(self, broker: BrokerImage, why: str) -> None:
        """End a broker's registration before its session ends.

        This is safe even if the broker is alive: epochs fence its writes, and it registers again
        when it sees that its node is gone.
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

    async def check_epoch(self) -> None:
        """Raise Deposed if another broker has become the controller."""
        try:
            await self.store.multi([check_controller(self.epoch)])
        except BadVersion as error:
            raise Deposed from error

    def _what_happened(self, gone: list[BrokerId], come: list[BrokerId]) -> str:
        parts = [self._fenced.pop(broker, f"broker {broker} died") for broker in gone]
        parts += [f"broker {broker} came" for broker in come]
        return ", ".join(parts) or "a broker may have lost records"
