"""Undoes changes: of settings, quotas and committed offsets, and deletions of topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, size_words
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResourceType, ConfigSource
from ottla.client.admin.undo import RecordedChange
from ottla.metadata.quota_entity import QuotaEntity, quota_entity
from ottla.operations.group_offsets import OffsetTarget, apply, planned

_SOURCES = {
    "topic": (ConfigSource.TOPIC,),
    "broker": (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER),
    "group": (ConfigSource.GROUP,),
    "client_metrics": (ConfigSource.CLIENT_METRICS,),
}
_WHAT = {
    "topic": "settings of topic {}",
    "broker": "settings of broker {}",
    "group": "settings of group {}",
    "client_metrics": "client metrics {}",
    "quota": "quotas of {}",
    "offsets": "committed offsets of group {}",
    "deleted_topic": "deletion of topic {}",
}


@dataclass(frozen=True, slots=True)
class UndoStep:
    """A value to change back. None: not set. `changed_to` differs if it was changed since."""

    name: str
    now: str | None
    back_to: str | None
    changed_to: str | None

    @property
    def is_changed_since(self) -> bool:
        return self.now != self.changed_to

    @property
    def is_needed(self) -> bool:
        return self.now != self.back_to


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo would do. `obstacle` says why it is refused; empty if it is not."""

    change: RecordedChange
    steps: Sequence[UndoStep] = ()
    obstacle: str = ""


def subject(change: RecordedChange) -> str:
    """Return what a change concerns, such as `settings of topic orders`."""
    name = change.name
    if change.kind == "quota":
        name = str(_entity(change))
    elif change.kind == "broker" and not name:
        return "settings of all brokers"
    return _WHAT.get(change.kind, change.kind + " {}").format(name)


def effect(change: RecordedChange) -> str:
    """Return what the undo of a change would do, in a few words."""
    if change.kind == "deleted_topic":
        size = size_words(change.size_bytes)
        return f"restores {counted(change.partitions, 'partition')}, {size}"
    words = [f"{name}={'(not set)' if old is None else old}" for name, old, _ in change.values]
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return f"sets {', '.join(words[:3])}{more}"


async def undoable(admin: Admin) -> list[RecordedChange]:
    """Return what can be undone, the newest first. Raises UnsupportedByBroker."""
    return await admin.undo.all()


async def plan_undo(admin: Admin, change_id: str) -> UndoPlan:
    """Compare a recorded change with the present state. Raises OttlaError for an unknown id."""
    found = [change for change in await admin.undo.all() if change.id == change_id]
    if not found:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"there is no change {change_id!r} to undo: `ottla undo` lists those there are",
        )
    (change,) = found
    if change.kind == "deleted_topic":
        taken = change.name in await admin.topics.list(internal=True)
        obstacle = (
            f"a new topic is named {change.name}: delete it, or copy its records elsewhere, first"
        )
        return UndoPlan(change, obstacle=obstacle if taken else "")
    now = await _values_now(admin, change)
    steps = [UndoStep(name, now.get(name), old, new) for name, old, new in change.values]
    steps = [step for step in steps if step.is_needed]
    changed = [step.name for step in steps if step.is_changed_since]
    obstacle = f"changed again since: {', '.join(changed)}; --force undoes it anyway"
    return UndoPlan(change, steps, obstacle if changed else "")


async def carry_out_undo(admin: Admin, plan: UndoPlan, *, force: bool = False) -> None:
    """Undo a change. Raises INVALID_REQUEST if the plan has an obstacle, unless forced."""
    change = plan.change
    if plan.obstacle and not (force and plan.steps):
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"nothing is undone: {plan.obstacle}")
    back = {step.name: step.back_to for step in plan.steps}
    if change.kind == "deleted_topic":
        await admin.undo.restore_topic(change.topic_id, change.name)
    elif not back:
        return
    elif change.kind == "quota":
        limits = {name: None if text is None else float(text) for name, text in back.items()}
        await admin.quotas.alter(_entity(change), limits)
    elif change.kind == "offsets":
        singles = {_place(name): None if to is None else int(to) for name, to in back.items()}
        moves = await planned(admin, change.name, OffsetTarget(singles=singles), [])
        await apply(admin, change.name, moves)
    else:
        await admin.configs.alter(ConfigResourceType[change.kind.upper()], change.name, back)


async def _values_now(admin: Admin, change: RecordedChange) -> Mapping[str, str | None]:
    names = [name for name, _, _ in change.values]
    if change.kind == "quota":
        limits = (await admin.quotas.all()).get(_entity(change), {})
        return {
            name: next(
                # A limit is a number, and may be written in several ways.
                (text for text in pair if text is not None and float(text) == limits[name]),
                str(limits[name]),
            )
            for name, *pair in change.values
            if name in limits
        }
    if change.kind == "offsets":
        offsets = await admin.groups.offsets(change.name)
        places = {name: offsets.get(_place(name)) for name in names}
        return {name: None if one is None else str(one.offset) for name, one in places.items()}
    kind = ConfigResourceType[change.kind.upper()]
    entries = await admin.configs.describe(kind, change.name, names)
    sources = _SOURCES[change.kind]
    wanted = sources[:1] if change.name else sources[1:] or sources
    return {
        entry.name: value
        for entry in entries.values()
        for _, value, source in reversed(entry.synonyms)
        if source in wanted
    }


def _entity(change: RecordedChange) -> QuotaEntity:
    entity = quota_entity(f"/config/{change.name}")
    if entity is None:
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"{change.name} has no quotas")
    return entity


def _place(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition(":")
    return TopicPartition(topic, int(partition))
