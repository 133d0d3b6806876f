"""What changes of topics, and requests about settings, need."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer, Needs, each
from ottla.broker.configs.configs import ResourceType
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.messages.create_topics import CreateTopicsResponse
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.wire.messages.retention_standing import RetentionStandingResponse

_TOPIC, _DENIED = AclResource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED


def create_topics(check: RequestCheck) -> Amend | DeniedAnswer:
    """CREATE on the cluster, or on each topic; the settings in the answer DESCRIBE_CONFIGS."""
    others = None if check.sees_cluster(AclOperation.CREATE) else _creates(check)
    if isinstance(others, DeniedAnswer):
        return others

    def amend(response: CreateTopicsResponse) -> None:
        for one in response.topics:
            if one.error_code or check.sees(AclOperation.DESCRIBE_CONFIGS, _TOPIC, one.name):
                continue
            one.topic_config_error_code = _DENIED
            one.num_partitions = one.replication_factor = -1
            one.configs = []
        if others is not None:
            others(response)

    return amend


def _create_needs(check: RequestCheck, asked: Any) -> ErrorCode | None:
    return check.code(AclOperation.CREATE, _TOPIC, asked.name)


_creates = each("topics", "topics", _create_needs)


def delete_topics(check: RequestCheck) -> Amend | DeniedAnswer | None:
    """DELETE on the cluster, or on each topic.

    A topic named by its id keeps its name hidden without DESCRIBE.
    """
    if check.sees_cluster(AclOperation.DELETE):
        return None
    body: DeleteTopicsRequest = check.body
    refused: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    for asked in body.topics or [DeleteTopicState(name=name) for name in body.topic_names]:
        by_id = asked.name is None
        name = check.topic_name(asked.topic_id) if asked.name is None else asked.name
        if name is None or check.code(AclOperation.DELETE, _TOPIC, name) is None:
            allowed.append(asked)
            continue
        seen = check.sees(AclOperation.DESCRIBE, _TOPIC, name)
        if seen and check.image.topic(name) is None:
            # The handler answers that it does not exist, which the client may know.
            allowed.append(asked)
            continue
        refused.append(
            DeletableTopicResult(
                name=name if seen or not by_id else None,
                topic_id=asked.topic_id if by_id else NO_TOPIC_ID,
                error_code=_DENIED,
            )
        )
    if not refused:
        return None
    if not allowed:
        return DeniedAnswer(check.response(responses=refused))
    if body.topics:
        body.topics = allowed
    else:
        body.topic_names = [one.name or "" for one in allowed]

    def amend(response: Any) -> None:
        response.responses += refused

    return amend


def configs(operation: AclOperation) -> Needs:
    """The settings of a topic or group need the operation on it, all others on the cluster."""

    def needs(check: RequestCheck, asked: Any) -> ErrorCode | None:
        if asked.resource_type == ResourceType.TOPIC:
            return check.code(operation, _TOPIC, asked.resource_name)
        if asked.resource_type == ResourceType.GROUP:
            return check.code(operation, AclResource.GROUP, asked.resource_name)
        return check.code(operation, AclResource.CLUSTER, CLUSTER_NAME)

    return needs


def offset_for_leader_epoch(check: RequestCheck, asked: Any) -> ErrorCode | None:
    """CLUSTER_ACTION on the cluster, or DESCRIBE on the topic."""
    if check.sees_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return check.code(AclOperation.DESCRIBE, _TOPIC, asked.topic)


def retention_standing(check: RequestCheck) -> Amend:
    """DESCRIBE on the topic; readers that the client may not DESCRIBE are left out."""
    check.require(AclOperation.DESCRIBE, _TOPIC, check.body.topic)

    def amend(response: RetentionStandingResponse) -> None:
        response.readers = [
            one
            for one in response.readers
            if check.sees(AclOperation.DESCRIBE, AclResource.GROUP, one.group_id)
        ]

    return amend
