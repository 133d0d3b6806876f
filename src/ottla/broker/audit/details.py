"""What the lines of several APIs have in common: resources, settings without secrets, and parts.

Nothing that a client changed is left out of a line: what is too much for one has several.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.broker.configs.configs import ResourceType
from ottla.broker.requests.auditing import Need
from ottla.security.audit.line import bounded, canonical
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

# Of one line, which has other fields beside them.
_ITEMS_MAX = 50
_BYTES_MAX = 32 << 10
_HIDDEN = "(hidden)"

# A partition of a topic, with what it was to get or what became of it.
Part = tuple[str, int, Any]


def cluster(operation: AclOperation) -> tuple[Need, ...]:
    """The operation on the cluster."""
    return (Need(operation, AclResource.CLUSTER, CLUSTER_NAME),)


def topic(operation: AclOperation, name: str) -> tuple[Need, ...]:
    """The operation on a topic."""
    return (Need(operation, AclResource.TOPIC, name),)


def group(operation: AclOperation, name: str) -> tuple[Need, ...]:
    """The operation on a group."""
    return (Need(operation, AclResource.GROUP, name),)


def shown(kind: int, name: str, value: str | None) -> str | None:
    """The value of a setting; hidden where it may be a secret, or the setting is unknown."""
    if value is None:
        return None
    if kind in (ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        return bounded(value)
    table = {ResourceType.TOPIC: TOPIC_SETTINGS, ResourceType.GROUP: GROUP_SETTINGS}.get(
        ResourceType(kind), BROKER_SETTINGS
    )
    setting = table.get(name)
    return _HIDDEN if setting is None or setting.sensitive else bounded(value)


def portions(items: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Items by name, as many as one line has room for; one of a name that is there begins anew.

    There is one portion at least.
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


def outcomes(
    wanted: Iterable[Part], answered: Iterable[Part], code: int = 0
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Topic, error and partitions of each line: what was done and what failed stand apart.

    `code` is the error of the request as a whole, and of what has no answer.
    """
    held: dict[tuple[str, int], deque[Any]] = {}
    for name, index, value in wanted:
        held.setdefault((name, index), deque()).append(value)
    found: dict[tuple[str, int], list[tuple[str, Any]]] = {}

    def put(name: str, index: int, value: Any, error: int) -> None:
        found.setdefault((name, error or code), []).append((str(index), value))

    for name, index, error in answered:
        values = held.get((name, index))
        put(name, index, values.popleft() if values else None, error)
    for (name, index), values in held.items():
        for value in values:
            put(name, index, value, 0)
    for (name, error), items in found.items():
        for portion in portions(items):
            yield name, error, portion


def answers(topics: Iterable[Any]) -> Iterator[Part]:
    """The errors of the partitions in a response. Names of fields depend on the API."""
    for one in topics:
        for part in one.partitions:
            yield name_of(one), part.partition_index, part.error_code


def indexes(topics: Iterable[Any], field: str) -> Iterator[Part]:
    """The partitions that a request lists by their numbers alone."""
    return ((name_of(one), index, None) for one in topics for index in getattr(one, field))


def name_of(topic: Any) -> str:
    """A topic's name in a request or response, or else its id."""
    name: str = getattr(topic, "name", "") or getattr(topic, "topic_name", "")
    return name or str(topic.topic_id)


def numbers(portion: Mapping[str, Any]) -> list[int]:
    """The partitions of a portion."""
    return [int(index) for index in portion]
