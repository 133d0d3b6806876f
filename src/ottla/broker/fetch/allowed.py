"""Checks, at every fetch, which of its partitions the client may READ.

A fetch session remembers only partitions that exist and that its client may READ. Otherwise a
client could fill memory, since a session outlives its connection, and a request has room for
250,000 invented names.
"""

from collections.abc import Iterable
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.fetch.read import failed
from ottla.broker.fetch.sessions import PartitionKey, WantedPartition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.auditing import Denials, Need
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.fetch import FetchResponse, PartitionData

Denied = list[tuple[PartitionKey, PartitionData]]
NOTHING_DENIED: Denied = []


def readable_by(
    request: RequestContext,
    partitions: Partitions,
    wanted: Iterable[tuple[PartitionKey, WantedPartition]],
) -> tuple[list[tuple[PartitionKey, WantedPartition]], Denied]:
    """Return the partitions that the client may READ, and error answers for the rest.

    A partition with an unknown topic id is returned, too; the read answers UNKNOWN_TOPIC_ID.
    """
    access = request.access
    assert access is not None, "only where there is an authorizer"
    allowed: list[tuple[PartitionKey, WantedPartition]] = []
    denied: Denied = []
    denials = Denials(request)
    for key, what in wanted:
        name = partitions.topic_name(key.topic) if isinstance(key.topic, UUID) else key.topic
        if name is None or access.allows(AclOperation.READ, AclResource.TOPIC, name):
            allowed.append((key, what))
        else:
            denials.add(Need(AclOperation.READ, AclResource.TOPIC, name))
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            denied.append((key, failed(key.partition, code)))
    if denied:
        denials.end()
        request.amend = _nothing_to_add
    return allowed, denied


def can_be_remembered(
    request: RequestContext, partitions: Partitions, keys: Iterable[PartitionKey]
) -> bool:
    """Return whether all of these partitions exist and the client may READ them."""
    return all(_can_be_remembered(request, partitions, key) for key in keys)


def _can_be_remembered(request: RequestContext, partitions: Partitions, key: PartitionKey) -> bool:
    name = partitions.topic_name(key.topic) if isinstance(key.topic, UUID) else key.topic
    if name is None or not partitions.exists(name, key.partition):
        return False
    access = request.access
    return access is None or access.allows(AclOperation.READ, AclResource.TOPIC, name)


def _nothing_to_add(_response: FetchResponse) -> None:
    """Do nothing, because the response already has the answers for denied partitions.

    As the request has an `amend` function, no shortcut is learned from it.
    """
