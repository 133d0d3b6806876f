"""Records changes of committed offsets that no consumer makes, so that they can be undone."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.broker.requests.request import RequestContext
from ottla.broker.undo.changes import ChangeLog, author_of
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.metadata.undo import StoredChange

# Offsets by partition; None for a partition without a committed offset.
Offsets = Mapping[TopicPartition, int | None]
Spawn = Callable[[Coroutine[Any, Any, None]], object]

# How the client ids of Kafka's tools for administrators begin, and those of Ottla's.
_TOOLS = ("adminclient-", "ottla-admin", "ottla-cli", "ottla-console")


def committed(
    coordinator: GroupCoordinator, group_id: str, names: Iterable[TopicPartition] | None
) -> dict[TopicPartition, int | None]:
    """Return a group's committed offsets of the partitions in `names` (None: all it has)."""
    group = coordinator.registry.any(group_id)
    offsets = {} if group is None else group.offsets
    return {
        name: offsets[name].offset if name in offsets else None
        for name in (offsets if names is None else names)
    }


class Rewinds:
    """Records rewinds of groups: deleted offsets, and offsets set by a client without a member.

    Consumers that assign their partitions are such clients, too. So a commit counts only if it goes
    back, or comes from a tool for administrators.
    """

    def __init__(self, changes: ChangeLog, spawn: Spawn) -> None:
        self._changes = changes
        self._spawn = spawn

    def note(self, request: RequestContext, group_id: str, before: Offsets, after: Offsets) -> None:
        """Record a change that was made, if it is a rewind."""
        is_tool = (request.client_id or "").startswith(_TOOLS)
        if not is_tool and not any(_goes_back(before[name], new) for name, new in after.items()):
            return
        values = {
            f"{name.topic}:{name.partition}": (_text(before[name]), _text(new))
            for name, new in sorted(after.items())
        }
        change = StoredChange("offsets", group_id, values, author_of(request))
        self._spawn(self._changes.record(change))


def _goes_back(old: int | None, new: int | None) -> bool:
    return old is not None and (new is None or new < old)


def _text(offset: int | None) -> str | None:
    return None if offset is None else str(offset)
