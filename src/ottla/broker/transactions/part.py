"""The transaction coordinator, and the transactional work of partition leaders."""

from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.coordinators import ShardsStatus
from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.transactions.marker_sender import MarkerSender, MarkerWriter
from ottla.broker.transactions.transactions import Transactions
from ottla.broker.transactions.verification import AddPartitionsSender, Verifications


@dataclass(frozen=True, slots=True)
class TransactionStatus:
    """The transactional work on this broker."""

    shards: ShardsStatus
    # Brokers with a WriteTxnMarkers request in flight.
    marker_receivers: int
    # Verifications in flight: a transaction's first batch in a partition waits for the coordinator.
    verifications: int


class TransactionPart(BrokerPart):
    """The transaction coordinator, and the objects that write markers and verify batches."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        cluster: ClusterPart,
        partitions: Partitions,
        groups: Groups,
    ) -> None:
        view, store = cluster.view, cluster.store
        self.producer_ids = ProducerIdBlocks(store, view.broker_id)
        self.marker_writer = MarkerWriter(partitions, groups)
        self.marker_sender = MarkerSender(view, runtime, store, self.marker_writer, cluster.links())
        self.coordinator = Transactions(
            view, runtime, settings, partitions, self.producer_ids, self.marker_sender
        )
        self._adding = AddPartitionsSender(
            view, runtime, settings, self.coordinator, cluster.links()
        )
        self.verifications = Verifications(self._adding)

    def begin(self) -> None:
        self.coordinator.take_up()

    async def stop(self) -> None:
        self._adding.close()
        self.marker_sender.close()
        self.coordinator.close()

    def status(self) -> TransactionStatus:
        return TransactionStatus(
            self.coordinator.shards_status(), len(self.marker_sender), len(self.verifications)
        )

    def on_image(self) -> None:
        """Give up requests to brokers that are not in the new image."""
        self.marker_sender.on_image()
        self._adding.on_image()
