"""Share groups on this broker, except their membership, which is in `groups`."""

from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.coordinators import ShardsStatus
from ottla.broker.groups import Groups
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.dead_letters import DeadLetterSender
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates
from ottla.broker.share.persister import AssignmentLookup, Persister
from ottla.broker.share.share_partitions import SharePartitions
from ottla.broker.share.states import ShareStates
from ottla.broker.topics.topics import Topics


@dataclass(frozen=True, slots=True)
class ShareStatus:
    """Counts of member sessions, of open share partitions led by this broker, and of redeliveries.

    A redelivery is a record that is delivered again; they are counted since the broker's start.
    """

    sessions: int
    served: int
    redeliveries: int
    # The shards of the share coordinator.
    shards: ShardsStatus
    # Records written to dead-letter topics since the start, and records that could not be.
    dead_letters: int
    dead_letters_failed: int


class SharePart(BrokerPart):
    """The share coordinator, and the leader's side of share partitions."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        cluster: ClusterPart,
        partitions: Partitions,
        groups: Groups,
        topics: Topics,
    ) -> None:
        view = cluster.view
        self.states = ShareStates(view, runtime, settings, partitions)
        self.persister = Persister(view, runtime, topics, self.states, cluster.links())
        self.group_settings = ShareGroupSettings(view, settings)
        self.group_state = GroupShareStates(groups, self.persister)
        self._dead_letters = DeadLetterSender(
            view, runtime, settings, partitions, topics, cluster.links()
        )
        self.sharing = SharePartitions(
            runtime,
            settings,
            partitions,
            self.group_settings,
            self.persister,
            AssignmentLookup(view.broker_id, groups, cluster.peers),
            self._dead_letters,
        )

    def begin(self) -> None:
        self.states.take_up()

    async def stop(self) -> None:
        self.sharing.close()
        self.states.close()
        self.persister.close()
        self._dead_letters.close()

    def status(self) -> ShareStatus:
        return ShareStatus(
            len(self.sharing.sessions),
            len(self.sharing),
            self.sharing.redeliveries,
            self.states.shards_status(),
            self._dead_letters.written,
            self._dead_letters.failed,
        )

    def on_role(self, partition: Partition) -> None:
        """Handle a changed role of a partition."""
        self.states.on_role(partition)
        self.sharing.on_role(partition)
