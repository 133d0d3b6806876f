"""Notes on events in groups, from which `flights` builds the record of each rebalance.

A note has the event and the decisive setting; the recipient adds the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

CLASSIC = "classic"
CONSUMER = "consumer"


class Happening(StrEnum):
    """The causes of a rebalance, or of its length. The command line prints the texts."""

    JOINED = "joined"
    LEFT = "left"
    LATE = "late"
    CHANGED = "changed"
    RETURNED = "returned"
    TOPICS_CHANGED = "topics changed"
    PROTOCOL_CHANGED = "protocol changed"
    TOO_MANY = "too many"


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member as answers name it: `host` as Java prints an address, `/10.0.0.1`."""

    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """An event in a group of `protocol`; if `is_trigger`, a rebalance follows.

    `setting` is the name and value of the decisive setting, None if there is none.
    """

    group_id: str
    protocol: str
    kind: Happening
    identity: MemberIdentity | None
    words: str
    setting: str | None = None
    is_trigger: bool = True


@dataclass(frozen=True, slots=True)
class Formed:
    """The members of a generation are known.

    `ended_by` is the setting that ended the wait for them, None if all had joined.
    """

    group_id: str
    epoch: int
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class Targeted:
    """The new target assignment: the number of partitions of each present member."""

    group_id: str
    epoch: int
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MemberStopped:
    """The member has no partitions from now on, until it is assigned some."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Given:
    """A member got an assignment of `size` partitions, of which `gained` are new to it.

    If `is_settled`, it gets no further partitions in this epoch.
    """

    group_id: str
    member_id: str
    size: int
    gained: int
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """All members have their assignments, or the group is empty. -1 means an unknown number."""

    group_id: str
    epoch: int
    members: int
    partitions: int
    moved: int


Note = GroupEvent | Formed | Targeted | MemberStopped | Given | Settled
