"""Details that the audit lines of several APIs share: partitions, settings, topics and ACLs.

Details that are too long for one line are split over several lines, so that none is left out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.broker.configs.configs import ResourceType
from ottla.broker.configs.requests import Resource, settings_need
from ottla.broker.requests.auditing import AdminChange, Need, cluster_need, topic_need
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.audit.chain import bounded, canonical
from ottla.security.names import AclOperation, AclResource, PatternType, Permission

# The most items in one line; a line has other fields, too.
_ITEMS_MAX = 50
_BYTES_MAX = 32 << 10
_HIDDEN = "(hidden)"

# A partition of a topic: topic name, index, and its requested value or its outcome.
Part = tuple[str, int, Any]


def portions(items: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Split named items into portions, one for each line; a repeated name starts a new portion.

    Returns at least one portion.
    """
    portion: dict[str, Any] = {}
    size = 0
    for name, value in items:
        item_bytes = len(canonical({name: value}))
        if name in portion or len(portion) == _ITEMS_MAX or size + item_bytes > _BYTES_MAX:
            yield portion
            portion, size = {}, 0
        portion[name] = value
        size += item_bytes
    yield portion


def partition_changes(
    need: Need | Callable[[str], Need],
    wanted: Iterable[Part],
    answered: Iterable[Part],
    field: str = "partitions",
    *,
    detail: Mapping[str, Any] | None = None,
    code: int = 0,
) -> Iterator[AdminChange]:
    """Return the changes of each topic; succeeded and failed partitions are in separate ones.

    `field` is the field of the detail that maps each partition to its value in `wanted`;
    "partitions" lists only the partition numbers. If `need` is a function, the need names the
    topic; otherwise the detail names it. `code` is the error of the whole request, and of
    partitions without an answer.
    """
    for (name, error), items in _by_outcome(wanted, answered, code).items():
        for portion in portions(items):
            line = {**(detail or {}), field: portion}
            if field == "partitions":
                line[field] = [int(index) for index in portion]
            if callable(need):
                yield AdminChange((need(name),), line, error)
            else:
                yield AdminChange((need,), {**line, "topic": bounded(name)}, error)


def _by_outcome(
    wanted: Iterable[Part], answered: Iterable[Part], code: int
) -> Mapping[tuple[str, int], list[tuple[str, Any]]]:
    """Group the partitions and their requested values by topic and error."""
    held: dict[tuple[str, int], deque[Any]] = {}
    for name, index, value in wanted:
        held.setdefault((name, index), deque()).append(value)
    found: dict[tuple[str, int], list[tuple[str, Any]]] = {}
    for name, index, error in answered:
        values = held.get((name, index))
        value = values.popleft() if values else None
        found.setdefault((name, error or code), []).append((str(index), value))
    for (name, index), values in held.items():
        for value in values:
            found.setdefault((name, code), []).append((str(index), value))
    return found


def setting_changes(
    resource: Resource, settings: Iterable[tuple[str, str, str | None]], code: int
) -> Iterator[AdminChange]:
    """Return the changes of a resource; `settings` are triples of name, operation and value."""
    kind = resource.resource_type
    need = settings_need(AclOperation.ALTER_CONFIGS, resource)
    of = f"{_kind_name(kind)}:{bounded(resource.resource_name)}"
    named = (
        (name, {"name": bounded(name), "operation": how, "value": shown_setting(kind, name, value)})
        for name, how, value in settings
    )
    for portion in portions(named):
        yield AdminChange((need,), {"of": of, "settings": list(portion.values())}, code)


def _kind_name(kind: int) -> str:
    try:
        return ResourceType(kind).name.lower()
    except ValueError:
        return str(kind)


def shown_setting(kind: int, name: str, value: str | None) -> str | None:
    """Return the value of a setting; it is hidden if the setting is unknown or may be a secret."""
    if value is None:
        return None
    if kind in (ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        return bounded(value)
    tables = {ResourceType.TOPIC: TOPIC_SETTINGS, ResourceType.GROUP: GROUP_SETTINGS}
    setting = tables.get(ResourceType(kind), BROKER_SETTINGS).get(name)
    return _HIDDEN if setting is None or setting.sensitive else bounded(value)


def created(topic: str, detail: Mapping[str, Any], code: int = 0) -> AdminChange:
    """Return the change for a topic that was created, or whose creation failed."""
    operation = AclOperation.CREATE
    return AdminChange((cluster_need(operation), topic_need(operation, topic)), detail, code)


class AclFields(Protocol):
    """An ACL in a request or response. The two name the pattern type field differently."""

    resource_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission_type: int


def acl_text(acl: AclFields, pattern_type: int) -> str:
    """Return the text of an ACL for audit lines."""
    try:
        pattern = ResourcePattern(
            AclResource(acl.resource_type), acl.resource_name, PatternType(pattern_type)
        )
        operation, permission = AclOperation(acl.operation), Permission(acl.permission_type)
    except ValueError:
        return "with a number that stands for nothing known"
    return bounded(str(Acl(pattern, acl.principal, acl.host, operation, permission)))
