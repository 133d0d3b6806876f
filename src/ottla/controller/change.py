"""What a decision of the controller is: a partition's next state, and why."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.metadata.image import PartitionImage


class How(StrEnum):
    """How a leader was found. The texts stand in decision records."""

    IN_SYNC = "in sync"
    ELIGIBLE = "eligible"
    LAST_KNOWN = "last known eligible"
    UNCLEAN = "unclean"
    PREFERRED = "preferred"
    SHUTDOWN = "controlled shutdown"
    REASSIGNMENT = "reassignment"
    NOBODY = "nobody can lead"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings of a topic say: `min.insync.replicas`, `unclean.leader.election.enable`."""

    min_isr: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A state to write over the one it was decided from, at that one's version.

    `after.version` is the version expected in the store; its nonce is for the writer to set.
    `how` is None where the leader stays.
    """

    after: PartitionImage
    how: How | None
    # What happened, what spoke for this outcome, and the setting that decided, if one did.
    cause: str
    evidence: str
    setting: str | None = None
