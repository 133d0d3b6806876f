"""A decision of the controller: a partition's next state, with the reason."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.metadata.image import PartitionImage


class How(StrEnum):
    """How a leader was elected. Decision records contain these texts."""

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
    """A topic's election settings: `min.insync.replicas`, `unclean.leader.election.enable`."""

    min_isr: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A new state, with the version of the state from which it was decided.

    `after.version` is the version expected in the store; the writer sets the nonce.
    `how` is None where the leader stays.
    """

    after: PartitionImage
    how: How | None
    # The event, the observed state, and the decisive setting, if there is one.
    cause: str
    evidence: str
    setting: str | None = None
