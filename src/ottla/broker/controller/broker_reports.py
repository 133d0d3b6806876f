"""Acts on the reports of the controller's senders."""

from collections.abc import Awaitable, Callable

from ottla.base.ids import TopicPartition
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.partition_changes import PartitionChanges
from ottla.broker.controller.reachability import Reachability
from ottla.metadata.image import BrokerImage


class BrokerReports:
    """Implements `Reports` for one controller epoch; most reports become jobs.

    `check_epoch` asks the store whether this controller is deposed, `fence` ends a registration.
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
        # Called with a broker and the replicas it has deleted.
        self.on_deleted: list[Callable[[BrokerImage, list[TopicPartition]], None]] = []

    def deposed(self) -> None:
        """See `Reports`. Asks the store whether this controller is deposed."""
        self._jobs.once("check", self._check_epoch)

    def deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`."""
        for callback in self.on_deleted:
            callback(broker, names)

    def refused(self, broker: BrokerImage) -> None:
        """See `Reports`. Such a broker is dead; a live one registers again."""
        why = f"broker {broker.id} died: its address refuses connections"
        self._jobs.once(f"refused by {broker.id}", lambda: self._fence(broker, why))

    def sending(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        self._reachability.sending(broker)

    def answered(self, broker: BrokerImage) -> None:
        """See `Reports`."""
        self._reachability.answered(broker)

    def failed(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        """See `Reports`. These replicas are offline until their broker starts again."""
        self._changes.context.offline |= {(name, broker.id): None for name in names}
        cause = f"broker {broker.id} cannot use its disk"
        self._jobs.once(
            f"failed {broker.id} {names[0]}", lambda: self._changes.settle(names, cause)
        )
