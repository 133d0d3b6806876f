"""A decision of the controller: a partition's next state, and why."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.metadata.image import PartitionImage


class How(StrEnum):
    """How a leader was elected. Decision records show the texts."""

    IN_SYNC = "in sync"
    ELIGIBLE = "eligible"
    LAST_KNOWN = "last known eligible"
    UNCLEAN = "unclean"
    PREFERRED = "preferred"
    SHUTDOWN = "controlled shutdown"
    REASSIGNMENT = "reassignment"
    NO_LEADER = "nobody can lead"


@dataclass(frozen=True, slots=True)
class Rules:
    """A topic's settings for elections: `min.insync.replicas`, `unclean.leader.election.enable`."""

    min_isr: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A state to write over the one it was decided from, at that one's version.

    `after.version` is the version expected in the store; the writer sets the nonce.
    `how` is None where the leader stays.
    """

    after: PartitionImage
    how: How | None
    # What happened, the observed state, and the decisive setting, if there is one.
    cause: str
    evidence: str
    setting: str | None = None
