"""What requests about groups, their offsets and transactions need."""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer, Guard, each, text
from ottla.broker.requests.authorized import GROUP_OPERATIONS, NOT_ASKED
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsResponse

_GROUP, _TOPIC = AclResource.GROUP, AclResource.TOPIC
_READ, _DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
_TRANSACTION, _SHARE = 1, 2
_MANY_KEYS_FROM = 4
# The topics of a described member, whose type depends on the API.
TopicsOf = Callable[[Any], Iterator[str]]

_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def list_groups(check: RequestCheck) -> Amend | None:
    """DESCRIBE on the cluster; without it, the groups are listed that the client may DESCRIBE."""
    if check.sees_cluster(_DESCRIBE):
        return None

    def amend(response: ListGroupsResponse) -> None:
        response.groups = [g for g in response.groups if check.sees(_DESCRIBE, _GROUP, g.group_id)]

    return amend


def find_coordinator(check: RequestCheck) -> Any:
    """DESCRIBE on the group or transactional id; CLUSTER_ACTION for the state of share groups."""
    body: FindCoordinatorRequest = check.body
    if body.key_type == _SHARE:
        check.require_cluster(AclOperation.CLUSTER_ACTION)
        return None
    kind = AclResource.TRANSACTIONAL_ID if body.key_type == _TRANSACTION else _GROUP
    if check.version < _MANY_KEYS_FROM:
        check.require(_DESCRIBE, kind, body.key)
        return None
    return _coordinators[kind](check)


_coordinators = {
    kind: each("coordinator_keys", "coordinators", text(_DESCRIBE, kind))
    for kind in (_GROUP, AclResource.TRANSACTIONAL_ID)
}


def subscribes(check: RequestCheck) -> None:
    """READ on the group, DESCRIBE on every topic that the member subscribes to by name."""
    check.require(_READ, _GROUP, check.body.group_id)
    for name in check.body.subscribed_topic_names or ():
        check.require(_DESCRIBE, _TOPIC, name)


def describe_groups(items: str, topics_of: TopicsOf | None = None) -> Guard:
    """DESCRIBE on each group; the authorized operations are those of the client.

    `topics_of` names the topics that the answer says a member has. A group with one that the
    client may not DESCRIBE is answered with an error instead.
    """
    needs = each(items, "groups", text(_DESCRIBE, _GROUP))

    def guard(check: RequestCheck) -> Amend | DeniedAnswer:
        refused = needs(check)
        if isinstance(refused, DeniedAnswer):
            return refused

        def amend(response: Any) -> None:
            for group in response.groups:
                if topics_of is not None:
                    _hide(check, group, {n for m in group.members for n in topics_of(m)})
                if group.authorized_operations != NOT_ASKED:
                    group.authorized_operations = check.access.operations(
                        GROUP_OPERATIONS, _GROUP, group.group_id
                    )
            if refused is not None:
                refused(response)

        return amend

    return guard


def _hide(check: RequestCheck, group: Any, topics: set[str]) -> None:
    if all(check.sees(_DESCRIBE, _TOPIC, name) for name in topics):
        return
    group.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    group.error_message = _HIDDEN_TOPICS
    group.members = []


def of_consumer(member: Any) -> Iterator[str]:
    """The topics of a member of the consumer protocol."""
    for assignment in (member.assignment, member.target_assignment):
        yield from (part.topic_name for part in assignment.topic_partitions)


def of_sharer(member: Any) -> Iterator[str]:
    """The topics of a member of a share group."""
    yield from (part.topic_name for part in member.assignment.topic_partitions)


def describe_transactions(check: RequestCheck) -> Amend | DeniedAnswer:
    """DESCRIBE on each transactional id; of its topics, those that the client may DESCRIBE."""
    refused = _transactional_ids(check)
    if isinstance(refused, DeniedAnswer):
        return refused

    def amend(response: Any) -> None:
        for state in response.transaction_states:
            state.topics = [t for t in state.topics if check.sees(_DESCRIBE, _TOPIC, t.topic)]
        if refused is not None:
            refused(response)

    return amend


_transactional_ids = each(
    "transactional_ids",
    "transaction_states",
    text(_DESCRIBE, AclResource.TRANSACTIONAL_ID),
)
