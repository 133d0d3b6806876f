"""What a core decided about a group, as facts: `flights` makes the story of a rebalance of them.

A note says what happened and which setting decided it; the recipient adds when it happened.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

CLASSIC = "classic"
CONSUMER = "consumer"


class Happening(StrEnum):
    """What made a rebalance, or made it longer. The texts stand in the command line's answers."""

    JOINED = "joined"
    LEFT = "left"
    LATE = "late"
    CHANGED = "changed"
    RETURNED = "returned"
    TOPICS_CHANGED = "topics changed"
    PROTOCOL_CHANGED = "protocol changed"
    TOO_MANY = "too many"


@dataclass(frozen=True, slots=True)
class Who:
    """A member, as a person finds it: `host` as Java prints an address, `/10.0.0.1`."""

    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """Something happened to a group of `protocol`; where it `is_trigger`, a rebalance follows.

    `setting` is the name and value of the setting that decided, None where none did.
    """

    group_id: str
    protocol: str
    kind: Happening
    who: Who | None
    words: str
    setting: str | None = None
    is_trigger: bool = True


@dataclass(frozen=True, slots=True)
class Formed:
    """The members of a generation are known.

    `ended_by` is the setting that ended the wait for them, None where all had joined.
    """

    group_id: str
    epoch: int
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class Targeted:
    """The coordinator has shared out: how many partitions each present member shall have."""

    group_id: str
    epoch: int
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MemberStopped:
    """The member has no partitions from now on, until it is given some."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Given:
    """The member was told its share, `gained` of which it did not have before.

    `is_settled`: nothing more comes to it in this epoch.
    """

    group_id: str
    member_id: str
    size: int
    gained: int
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """All members have their shares, or none is left. Partitions are -1 where unknown."""

    group_id: str
    epoch: int
    members: int
    partitions: int
    moved: int


Note = GroupEvent | Formed | Targeted | MemberStopped | Given | Settled
