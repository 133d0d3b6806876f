"""What the lines of several APIs have in common: settings without secrets, and short lists."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.broker.configs.configs import ResourceType
from ottla.broker.requests.auditing import Need
from ottla.security.audit.line import bounded
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource

_ITEMS_MAX = 50
_HIDDEN = "(hidden)"


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


def first_code(codes: Iterable[int]) -> int:
    """The first error among codes; 0 where there is none."""
    return next((code for code in codes if code), 0)


def partitions_code(topic: Any) -> int:
    """The first error among the partitions of a topic in a response."""
    return first_code(part.error_code for part in topic.partitions)


def few(values: Mapping[int, Any]) -> dict[str, Any]:
    """Values by partition: the first fifty, and how many there are where they are more."""
    chosen = {str(key): value for key, value in islice(values.items(), _ITEMS_MAX)}
    return chosen if len(values) <= _ITEMS_MAX else {**chosen, "all": len(values)}


def few_of(values: list[Any]) -> list[Any]:
    """The first fifty of a list, and how many there are where they are more."""
    return values if len(values) <= _ITEMS_MAX else [*values[:_ITEMS_MAX], f"all: {len(values)}"]
