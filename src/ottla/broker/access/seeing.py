"""What requests for metadata need; topics that a client may not see stay hidden."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.base.settings import BrokerSettings
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer, Guard, divided
from ottla.broker.requests.authorized import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.messages.describe_cluster import DescribeClusterResponse
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

_TOPIC, _DESCRIBE, _DENIED = (
    AclResource.TOPIC,
    AclOperation.DESCRIBE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
# Fields for ids came with version 10, but topics may be asked for by them from here on.
_IDS_FROM = 12


def metadata(settings: BrokerSettings) -> Guard:
    """DESCRIBE on each topic; creating a missing one needs CREATE on it or on the cluster.

    A list of all topics leaves hidden ones out. A hidden topic that is asked for by name is
    answered alike whether it exists or not.
    """

    def guard(check: RequestCheck) -> Amend:
        body: MetadataRequest = check.body
        is_all = body.topics is None or (check.version == 0 and not body.topics)
        refused: list[MetadataResponseTopic] = []
        if not is_all:
            creates = body.allow_auto_topic_creation and settings.flag("auto.create.topics.enable")
            allowed = []
            for asked in body.topics or ():
                denied = _denied(check, asked, creates=creates)
                if denied is None:
                    allowed.append(asked)
                else:
                    refused.append(denied)
            body.topics = allowed
        # In version 0, no topics stand for all.
        nothing_left = not is_all and not body.topics

        def amend(response: MetadataResponse) -> None:
            if is_all:
                response.topics = [
                    one for one in response.topics if check.sees(_DESCRIBE, _TOPIC, one.name or "")
                ]
            elif nothing_left:
                response.topics = []
            response.topics += refused
            for one in response.topics:
                if one.topic_authorized_operations != NOT_ASKED and one.name is not None:
                    one.topic_authorized_operations = _operations(check, one.name)
            if response.cluster_authorized_operations != NOT_ASKED:
                response.cluster_authorized_operations = _cluster_operations(check)

        return amend

    return guard


def _denied(
    check: RequestCheck, asked: MetadataRequestTopic, *, creates: bool
) -> MetadataResponseTopic | None:
    by_id = asked.name is None or asked.topic_id != NO_TOPIC_ID
    if by_id and check.version < _IDS_FROM:
        # The handler refuses the request.
        return None
    name = check.topic_name(asked.topic_id) if by_id else asked.name
    if name is None:
        return None
    if check.code(_DESCRIBE, _TOPIC, name) is not None:
        return MetadataResponseTopic(
            error_code=_DENIED, name=None if by_id else name, topic_id=asked.topic_id
        )
    if not creates or by_id or check.image.topic(name) is not None:
        return None
    if check.sees_cluster(AclOperation.CREATE):
        return None
    if check.code(AclOperation.CREATE, _TOPIC, name) is None:
        return None
    return MetadataResponseTopic(error_code=_DENIED, name=name, is_internal=name in INTERNAL_TOPICS)


def describe_topic_partitions(check: RequestCheck) -> Amend | DeniedAnswer:
    """As Metadata: DESCRIBE on each topic, and hidden topics are left out of a list of all."""
    body: DescribeTopicPartitionsRequest = check.body
    refused: list[DescribeTopicPartitionsResponseTopic] = []
    if body.topics:
        names = dict.fromkeys(asked.name for asked in body.topics)
        allowed, denied = divided(names, lambda name: check.code(_DESCRIBE, _TOPIC, name) is None)
        refused = [
            DescribeTopicPartitionsResponseTopic(error_code=_DENIED, name=name) for name in denied
        ]
    else:
        allowed = [name for name in check.image.topics if check.sees(_DESCRIBE, _TOPIC, name)]
    if not allowed:
        return DeniedAnswer(DescribeTopicPartitionsResponse(topics=refused))
    body.topics = [TopicRequest(name=name) for name in allowed]

    def amend(response: DescribeTopicPartitionsResponse) -> None:
        for one in response.topics:
            if one.topic_authorized_operations != NOT_ASKED and one.name is not None:
                one.topic_authorized_operations = _operations(check, one.name)
        response.topics += refused

    return amend


def describe_cluster(check: RequestCheck) -> Amend | None:
    """Every client may; the authorized operations need DESCRIBE on the cluster."""

    def amend(response: DescribeClusterResponse) -> None:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = _cluster_operations(check)

    return amend


def _operations(check: RequestCheck, topic_name: str) -> int:
    return check.access.operations(TOPIC_OPERATIONS, _TOPIC, topic_name)


def _cluster_operations(check: RequestCheck) -> int:
    if not check.sees_cluster(_DESCRIBE):
        return 0
    return check.access.operations(CLUSTER_OPERATIONS, AclResource.CLUSTER, CLUSTER_NAME)
