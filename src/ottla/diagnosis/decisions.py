"""Which decisions made a partition's leader and ISR what they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.decisions import Story
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.partitions import standings_of
from ottla.metadata.decisions import DecisionKind

# An election changes the ISR, too: dead replicas leave it.
ABOUT_ISR = (
    DecisionKind.CREATED,
    DecisionKind.ISR_SHRUNK,
    DecisionKind.ISR_EXPANDED,
    DecisionKind.ISR_REFUSED,
    DecisionKind.FENCED,
    DecisionKind.TRUNCATED,
    DecisionKind.RESTARTED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
)
ABOUT_LEADER = (
    DecisionKind.CREATED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
    DecisionKind.RESIGNED,
)


@dataclass(frozen=True, slots=True)
class PartitionStory:
    """A partition as it stands, and the decisions behind that."""

    standing: PartitionStanding
    story: Story


async def story_of(
    admin: Admin, name: TopicPartition, kinds: Sequence[DecisionKind]
) -> PartitionStory:
    """How `name` stands, and the decisions of these kinds that brokers remember.

    Raises UNKNOWN_TOPIC_OR_PARTITION, and UnsupportedByBroker where the cluster is no Ottla.
    """
    (standing,) = await standings_of(admin, [name])
    return PartitionStory(standing, await admin.decisions.about(name, kinds))
