"""The senders of one controller epoch: one for each registration of each live broker."""

from collections.abc import Iterable, Iterator

from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.context import Context
from ottla.broker.controller.messages import ControllerMessages
from ottla.broker.controller.reports import Reports
from ottla.broker.controller.sender import BrokerSender, Deliver
from ottla.broker.controller.store_writes import Planned


class Senders:
    """Starts and stops senders as brokers come and go, and passes on what concerns all brokers."""

    def __init__(self, context: Context, messages: ControllerMessages, deliver: Deliver) -> None:
        self._context = context
        self._messages = messages
        self._deliver = deliver
        self._by_broker: dict[BrokerId, BrokerSender] = {}

    def __iter__(self) -> Iterator[BrokerSender]:
        return iter(self._by_broker.values())

    def get(self, broker_id: BrokerId) -> BrokerSender | None:
        """The sender of a live broker."""
        return self._by_broker.get(broker_id)

    def epochs(self) -> dict[BrokerId, int]:
        """The broker epochs that the senders send to."""
        return {broker_id: sender.broker.epoch for broker_id, sender in self._by_broker.items()}

    def end_old(self) -> list[BrokerId]:
        """Stop the senders of registrations that have ended; return their brokers."""
        live = self._context.live
        ended = [broker for broker, epoch in self.epochs().items() if live.get(broker) != epoch]
        for broker_id in ended:
            self._by_broker.pop(broker_id).stop()
        return ended

    def begin_new(self, reports: Reports) -> None:
        """Start a sender for each broker without one; it first sends the whole state.

        This broker comes first: its own sender's messages hold the addresses of the others.
        """
        own_id, brokers = self._messages.controller_id, self._context.brokers
        for broker_id in sorted(brokers, key=lambda broker: (broker != own_id, broker)):
            if broker_id not in self._by_broker:
                broker = brokers[broker_id]
                sender = BrokerSender(broker, self._context, self._messages, self._deliver, reports)
                self._by_broker[broker_id] = sender
                sender.start()

    def stop(self) -> None:
        """Stop sending."""
        for sender in self:
            sender.stop()
        self._by_broker.clear()

    # ------------------------------------------------------------ to all brokers

    def everything(self) -> None:
        """Send the whole state to all brokers again."""
        for sender in self:
            sender.everything()

    def brokers(self) -> None:
        """Send the changed set of live brokers."""
        for sender in self:
            sender.brokers()

    def partitions(self, names: list[TopicPartition]) -> None:
        """Send changed partitions: metadata to every broker, LeaderAndIsr to the replicas."""
        for sender in self:
            sender.partitions(names)

    def metadata(self, names: list[TopicPartition]) -> None:
        """Send changed metadata of these partitions."""
        for sender in self:
            sender.metadata(names)

    def changes(self, written: Iterable[Planned]) -> None:
        """Send written changes. A stopping broker only needs them for metadata."""
        written = list(written)
        names = [planned.name for planned in written]
        for broker_id, sender in self._by_broker.items():
            if broker_id in self._context.stopping:
                sender.metadata(names)
            else:
                sender.partitions(names)
        for name, before, change in written:
            for broker_id in before.replicas:
                if broker_id not in change.after.replicas and broker_id in self._by_broker:
                    stop = {name: change.after.leader_epoch}
                    self._by_broker[broker_id].stop_replicas(stop, delete=True)
