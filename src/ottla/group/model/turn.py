"""The inputs and the outputs of a decision."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ottla.group.records.consumer import ConsumerGroupRecord
from ottla.group.records.share import ShareGroupRecord
from ottla.group.records.stored import CoordinatorRecord
from ottla.group.values.member import Ticket
from ottla.group.values.notes import Note
from ottla.group.values.settings import GroupSettings
from ottla.group.values.timers import Timers
from ottla.group.values.topics import NO_TOPICS, TopicsView

R = TypeVar("R", bound=ConsumerGroupRecord | ShareGroupRecord)
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a command, and the topics that exist at that time.

    `now_ms` is monotonic, `timestamp_ms` the time of day.
    """

    now_ms: int
    timestamp_ms: int
    topics: TopicsView = NO_TOPICS


@dataclass(frozen=True, slots=True)
class Call:
    """The client that sent a request, and what its answer needs."""

    ticket: Ticket
    version: int
    client_id: str = ""
    client_host: str = ""
    # A new, unguessable text that makes a generated member id unique.
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class GroupReply:
    """The answer to the request of `ticket`; its type follows from the request."""

    ticket: Ticket
    message: Any


@dataclass(slots=True)
class GroupDecision:
    """Records to append and apply; answers to send once they are committed; notes."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[GroupReply] = field(default_factory=list)
    notes: Sequence[Note] = ()


def answered(call: Call, message: object) -> GroupDecision:
    """Return a decision that only answers the call."""
    return GroupDecision(replies=[GroupReply(call.ticket, message)])


class Turn:
    """The working state of one command: the time, the settings, and the decision so far.

    `now_ms` is monotonic and measures timeouts; `timestamp_ms` is the time of day and goes into
    records.
    """

    __slots__ = ("decision", "now_ms", "settings", "timers", "timestamp_ms", "topics")

    def __init__(self, settings: GroupSettings, timers: Timers, at: Moment) -> None:
        self.settings = settings
        self.timers = timers
        self.now_ms = at.now_ms
        self.timestamp_ms = at.timestamp_ms
        self.topics = at.topics
        self.decision = GroupDecision()

    def reply(self, ticket: Ticket, message: Any) -> None:
        """Answer the request of `ticket` once all records of this turn are committed."""
        self.decision.replies.append(GroupReply(ticket, message))

    def write(self, record: CoordinatorRecord) -> None:
        """Add a record to append and then apply."""
        self.decision.records.append(record)

    def note(self, note: Note) -> None:
        """Add a note for `ottla why` and DescribeRebalances."""
        if isinstance(self.decision.notes, list):
            self.decision.notes.append(note)
        else:
            self.decision.notes = [note]


class Changeable(Protocol[R_contra]):
    """A group whose state its records change."""

    def apply(self, record: R_contra, /) -> None: ...


def change(turn: Turn, group: Changeable[R], record: R) -> None:
    """Write a record, and apply it at once, so that later steps of the decision see it."""
    group.apply(record)
    turn.write(record)
