"""Plans and applies changes of a group's committed offsets, by partition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.client.admin import Admin
from ottla.client.admin.groups import SHARE, GroupDescription
from ottla.client.connection.cluster import connections_of
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.diagnosis.groups import described_group
from ottla.diagnosis.partitions import Offsets, known_offsets, offsets_at, partitions_of

_AT_REST = ("Empty", "Dead")


async def require_all_idle(admin: Admin, group_ids: Iterable[str], doing: str) -> None:
    """Raise GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP for the first group that cannot be changed."""
    for group_id in group_ids:
        require_idle(await described_group(admin, group_id), doing)


def require_idle(description: GroupDescription, doing: str) -> None:
    """Raise NON_EMPTY_GROUP, which names the members, if the group has any."""
    if description.state in _AT_REST and not description.members:
        return
    count = len(description.members)
    names = ", ".join(sorted({f"{one.client_id} at {one.host}" for one in description.members}))
    members = f", {counted(count, 'member')}: {names}" if count else ""
    raise OttlaError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {description.group_id!r} is active ({description.state}{members}); stop its "
        f"consumers to {doing} it. One that crashed counts as a member until its session times out",
    )


@dataclass(frozen=True, slots=True)
class OffsetMove:
    """The old and the new committed offset of a partition. None means no committed offset.

    For a share group, these are start offsets. `done` is the number of acknowledged records at
    and after the old start offset; they are delivered again.
    """

    place: TopicPartition
    start: int
    end: int
    old: int | None
    new: int | None
    note: str = ""
    done: int = 0

    @property
    def is_change(self) -> bool:
        """Whether the offset changes. If `new` is None with a note, no new offset was found."""
        if self.new is None and self.note:
            return False
        return self.new != self.old or self.done > 0

    @property
    def change(self) -> int | None:
        """Return the difference of the offsets; None if either is missing."""
        return None if self.old is None or self.new is None else self.new - self.old


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetTarget:
    """The requested offset; one field is set. None in `singles` deletes the committed offset."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    singles: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    time_ms: int | None = None
    by: int | None = None


@dataclass(frozen=True, slots=True)
class _Standing:
    """A group's present offsets. None: a partition of a share group without a start offset."""

    is_share: bool = False
    offsets: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    done: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """The offsets to change, and whether the group is a share group."""

    is_share: bool
    moves: Sequence[OffsetMove]

    @property
    def undoing(self) -> list[tuple[TopicPartition, int | None]]:
        """Return the offsets that undo the plan; None deletes a committed offset.

        A share group can delete start offsets only for a whole topic. So if it had no start offset
        in any partition of a topic, all of them are deleted; otherwise only its old offsets are
        restored, and new ones stay.
        """
        moved = [move for move in self.moves if move.is_change]
        if self.is_share:
            begun = {move.place.topic for move in self.moves if move.old is not None}
            moved = [
                move
                for move in moved
                if move.new != move.old and (move.old is not None or move.place.topic not in begun)
            ]
        return [(move.place, move.old) for move in moved]


async def planned(
    admin: Admin, group_id: str, target: OffsetTarget, topics: Sequence[tuple[str, list[int]]]
) -> OffsetPlan:
    """Plan the changes, in order. Raises OttlaError for an active or unknown group.

    `topics` limits the plan to these topics or to partitions of them. Without `topics`, it has
    all partitions for which the group has committed offsets. A group that does not exist yet
    gets committed offsets, if `topics` names any.
    """
    listed = {entry.group_id for entry in await admin.groups.all()}
    standing = _Standing()
    if group_id in listed or not (topics or target.singles):
        description = await described_group(admin, group_id)
        require_idle(description, "move")
        if description.protocol_type == SHARE:
            standing = await _share_group_now(admin, group_id)
        else:
            committed = await admin.groups.offsets(group_id)
            standing = _Standing(
                offsets={place: entry.offset for place, entry in committed.items()}
            )
    known = standing.offsets
    places = await _places(admin, group_id, target, topics, list(known))
    starts = await known_offsets(admin, places, EARLIEST)
    ends = await known_offsets(admin, places, LATEST)
    at_time: Offsets = {}
    if target.time_ms is not None:
        at_time = await offsets_at(connections_of(admin), list(ends), target.time_ms)
    moves: list[OffsetMove] = []
    for place in places:
        if place in starts and place in ends:
            start, end, old = starts[place], ends[place], known.get(place)
            wish, note = wished(target, place, start, end, old, at_time.get(place, -1))
            move = bounded(place, start, end, old, wish, note)
            done = standing.done.get(place, 0)
            if done and move.new is not None and move.new <= (old or 0):
                note = "; ".join(filter(None, (move.note, f"{done} done with come again")))
                move = replace(move, note=note, done=done)
            moves.append(move)
    return OffsetPlan(standing.is_share, moves)


async def _share_group_now(admin: Admin, group_id: str) -> _Standing:
    positions = await admin.share_groups.offsets(group_id)
    ends = await known_offsets(admin, positions, LATEST)
    done: Offsets = {}
    for place, position in positions.items():
        start, lag = position.start_offset, position.lag
        if start is not None and lag is not None and place in ends:
            done[place] = max(0, ends[place] - start - lag)
    offsets = {place: position.start_offset for place, position in positions.items()}
    return _Standing(is_share=True, offsets=offsets, done=done)


def wished(
    target: OffsetTarget, place: TopicPartition, start: int, end: int, old: int | None, at_time: int
) -> tuple[int | None, str]:
    """Return the requested offset and a note. `at_time` -1 means that all records are older."""
    if target.earliest:
        return start, ""
    if target.latest:
        return end, ""
    if target.time_ms is not None:
        return (at_time, "") if at_time >= 0 else (end, "no record is as late: the end")
    if target.by is not None:
        return (None, "nothing committed to start from") if old is None else (old + target.by, "")
    return (target.singles[place] if target.singles else target.offset), ""


def bounded(
    place: TopicPartition, start: int, end: int, old: int | None, wish: int | None, note: str
) -> OffsetMove:
    """Return the move to the requested offset, limited to the bounds of the log."""
    if wish is None:
        return OffsetMove(place, start, end, old, wish, note)
    if wish < start:
        wish, note = start, f"{wish} is before the first record"
    elif wish > end:
        wish, note = end, f"{wish} is beyond the end"
    return OffsetMove(place, start, end, old, wish, note)


async def _places(
    admin: Admin,
    group_id: str,
    target: OffsetTarget,
    topics: Sequence[tuple[str, list[int]]],
    known: Sequence[TopicPartition],
) -> list[TopicPartition]:
    """Return the partitions that the target or `topics` select, else all `known` ones."""
    if target.singles:
        for place in target.singles:
            await partitions_of(connections_of(admin), place.topic, [place.partition])
        return sorted(target.singles)
    if topics:
        found: set[TopicPartition] = set()
        for topic, partitions in topics:
            found.update(await partitions_of(connections_of(admin), topic, partitions))
        return sorted(found)
    if not known:
        raise OttlaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"group {group_id!r} has committed nothing; say which topic: --topic TOPIC",
        )
    return sorted(known)


async def apply(admin: Admin, group_id: str, plan: OffsetPlan) -> None:
    """Commit the new offsets. Raises NON_EMPTY_GROUP if a consumer joined meanwhile."""
    moves = plan.moves
    changed = {move.place: move.new for move in moves if move.is_change and move.new is not None}
    forgotten = [move.place for move in moves if move.is_change and move.new is None]
    if plan.is_share:
        topics = await _forgotten_topics(admin, group_id, forgotten)
        if changed:
            await admin.share_groups.set_offsets(group_id, changed)
        if topics:
            await admin.share_groups.delete_offsets(group_id, topics)
        return
    try:
        if changed:
            await admin.groups.set_offsets(group_id, changed)
        if forgotten:
            await admin.groups.delete_offsets(group_id, forgotten)
    except OttlaError as error:
        if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            raise OttlaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"a consumer joined group {group_id!r} meanwhile; nothing was changed: stop it",
            ) from None
        raise


async def _forgotten_topics(
    admin: Admin, group_id: str, forgotten: Sequence[TopicPartition]
) -> list[str]:
    """Return the topics of these partitions. Raises OttlaError if one has other partitions."""
    topics = sorted({place.topic for place in forgotten})
    for topic in topics:
        left = set(await partitions_of(connections_of(admin), topic)) - set(forgotten)
        if left:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"share group {group_id!r} forgets whole topics: name all partitions of {topic!r} "
                f"with =none, or none of them ({', '.join(map(str, sorted(left)))} missing)",
            )
    return topics
