"""The decisions that led to a partition's leader and ISR."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.decisions import Story
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.partitions import standings_of
from ottla.metadata.decisions import DecisionKind

# An election changes the ISR, too: dead replicas are removed.
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
    """The state of a partition, with its decisions."""

    standing: PartitionStanding
    story: Story


async def story_of(
    admin: Admin, name: TopicPartition, kinds: Sequence[DecisionKind]
) -> PartitionStory:
    """The state of `name`, and the brokers' remembered decisions of these kinds.

    Raises UNKNOWN_TOPIC_OR_PARTITION, and UnsupportedByBroker where the cluster is no Ottla.
    """
    (standing,) = await standings_of(admin, [name])
    return PartitionStory(standing, await admin.decisions.about(name, kinds))
