"""The flight recorder of groups: the causes of each rebalance, and its duration.

It is fed by notes and knows no group itself. Its memory is bounded, per group and in total.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.group.model.turn import Moment
from ottla.group.values.notes import (
    CONSUMER,
    Formed,
    Given,
    GroupEvent,
    MemberStopped,
    Note,
    Settled,
    Targeted,
)

# How many causes of a rebalance are kept; later causes are only counted.
_CAUSES_MAX = 16
# How many members are kept of those that were without partitions the longest.
_WAITS_MAX = 8


class Ending(StrEnum):
    """How a rebalance ended."""

    LASTS = "lasts"
    STABLE = "stable"
    EMPTY = "empty"
    # A static member was back, or left for a while: no partition moved.
    AVOIDED = "avoided"
    # Another broker coordinates the group now, or this one loads it anew.
    GIVEN_UP = "given up"


@dataclass(slots=True)
class Flight:
    """One rebalance, from its cause until all members have their assignments. Times are in ms.

    `without_ms` is how long each member had no partitions. `stopped` has the members that still
    have none, each with the time at which it lost them. `formed_ms` is how long the join phase
    took. When the next rebalance begins, `without_ms` is cut to the longest times, while
    `without_members` and `without_total_ms` still count all members.
    """

    protocol: str
    began: Moment
    epoch: int = -1
    ending: Ending = Ending.LASTS
    duration_ms: int = -1
    formed_ms: int = -1
    ended_by: str | None = None
    members: int = -1
    partitions: int = -1
    moved: int = -1
    causes: list[tuple[int, GroupEvent]] = field(default_factory=list)
    causes_omitted: int = 0
    without_ms: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)
    without_members: int = 0
    without_total_ms: int = 0
    # Members that have not reached their target in the epoch; None before it is known.
    unsettled: set[str] | None = None

    @property
    def is_open(self) -> bool:
        return self.ending is Ending.LASTS

    def end(self, ending: Ending, at: Moment) -> None:
        """End the rebalance; members may still get their assignments."""
        self.ending = ending
        self.duration_ms = at.now_ms - self.began.now_ms

    def add_without(self, member_id: str, wait_ms: int) -> None:
        """Add the time that a member was without partitions, perhaps not for the first time."""
        self.without_members += member_id not in self.without_ms
        self.without_total_ms += wait_ms
        self.without_ms[member_id] = self.without_ms.get(member_id, 0) + wait_ms

    def longest(self) -> list[tuple[str, int]]:
        """Return the members without partitions for the longest time, and how long."""
        ordered = sorted(self.without_ms.items(), key=lambda each: (-each[1], each[0]))
        return ordered[:_WAITS_MAX]

    def shrink(self) -> None:
        """Drop the details of this rebalance, as another has begun."""
        self.without_ms = dict(self.longest())
        self.stopped = {}
        self.unsettled = None


class Flights:
    """The latest rebalances of each group, oldest first.

    Holds at most `per_group` rebalances for each of at most `groups` groups. Beyond that, it drops
    the group whose latest cause is the oldest.
    """

    def __init__(self, *, per_group: int = 16, groups: int = 1024) -> None:
        assert per_group > 0
        assert groups > 0
        self._per_group = per_group
        self._groups = groups
        self._held: OrderedDict[str, deque[Flight]] = OrderedDict()

    def of(self, group_id: str) -> tuple[Flight, ...]:
        """The known rebalances of a group."""
        return tuple(self._held.get(group_id, ()))

    def take(self, notes: Iterable[Note], at: Moment) -> None:
        """Add notes to the rebalances of their groups."""
        for note in notes:
            if isinstance(note, GroupEvent):
                self._on_cause(note, at)
                continue
            held = self._held.get(note.group_id)
            if held is not None:
                _go_on(held[-1], note, at)

    def give_up(self, group_id: str, at: Moment) -> None:
        """End a running rebalance, as the coordinator has lost its state."""
        held = self._held.get(group_id)
        if held is not None and held[-1].is_open:
            held[-1].end(Ending.GIVEN_UP, at)

    def _on_cause(self, cause: GroupEvent, at: Moment) -> None:
        held = self._held.get(cause.group_id)
        if held is None:
            held = self._held[cause.group_id] = deque(maxlen=self._per_group)
            if len(self._held) > self._groups:
                self._held.popitem(last=False)
        else:
            self._held.move_to_end(cause.group_id)
        if not held or not held[-1].is_open:
            if held:
                held[-1].shrink()
            # Without the topics of that moment, which would stay in memory with it.
            held.append(Flight(cause.protocol, Moment(at.now_ms, at.timestamp_ms)))
            if not cause.is_trigger:
                held[-1].end(Ending.AVOIDED, at)
        flight = held[-1]
        # A later epoch is needed now: no member has settled in it.
        if cause.is_trigger:
            flight.protocol = cause.protocol
            flight.unsettled = None
        if len(flight.causes) < _CAUSES_MAX:
            flight.causes.append((at.timestamp_ms, cause))
        else:
            flight.causes_omitted += 1


def _go_on(flight: Flight, note: Note, at: Moment) -> None:
    match note:
        case MemberStopped(_, member_id):
            if flight.is_open:
                flight.stopped.setdefault(member_id, at.now_ms)
        case Given(_, member_id, size, _, _):
            _on_given(flight, note, at)
            if size > 0 or note.is_settled:
                since_ms = flight.stopped.pop(member_id, None)
                if since_ms is not None and size > 0 and at.now_ms > since_ms:
                    flight.add_without(member_id, at.now_ms - since_ms)
        case _ if not flight.is_open:
            pass  # The rebalance has ended or was given up, so the note is ignored.
        case Formed(_, epoch, ended_by):
            flight.epoch, flight.ended_by = epoch, ended_by
            flight.formed_ms = at.now_ms - flight.began.now_ms
        case Targeted(_, epoch, sizes):
            flight.epoch = epoch
            flight.members = len(sizes)
            flight.partitions = sum(sizes.values())
            flight.moved = max(flight.moved, 0)
            flight.unsettled = set(sizes)
            flight.stopped = {
                member_id: ms for member_id, ms in flight.stopped.items() if member_id in sizes
            }
        case Settled(_, epoch, members, partitions, moved):
            flight.epoch, flight.members = epoch, members
            flight.partitions, flight.moved = partitions, moved
            flight.end(Ending.STABLE if members else Ending.EMPTY, at)


def _on_given(flight: Flight, given: Given, at: Moment) -> None:
    if not flight.is_open or flight.protocol != CONSUMER:
        return
    flight.moved = max(flight.moved, 0) + given.gained
    if given.is_settled and flight.unsettled is not None:
        flight.unsettled.discard(given.member_id)
        if not flight.unsettled:
            flight.end(Ending.STABLE, at)
