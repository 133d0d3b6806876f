"""Validates a heartbeat of the consumer protocol by itself."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.subscriptions import require_pattern
from ottla.group.model.consumer_group import AWAY
from ottla.group.values.settings import GroupSettings
from ottla.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest

JOIN = 0
LEAVE = -1

# From this version on members make their own ids (KIP-1082).
_OWN_MEMBER_ID_FROM = 1


def require_valid(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings
) -> None:
    """Raises OttlaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION."""
    epoch = request.member_epoch
    _forbid(is_blank(request.group_id), "GroupId can't be empty.")
    _forbid(is_blank(request.instance_id), "InstanceId can't be empty.")
    _forbid(is_blank(request.rack_id), "RackId can't be empty.")
    if version >= _OWN_MEMBER_ID_FROM or epoch != JOIN:
        _forbid(is_blank(request.member_id), "MemberId can't be empty.")
    if epoch == JOIN:
        _require_complete(request)
    elif epoch == AWAY:
        _forbid(request.instance_id is None, "InstanceId can't be null.")
    else:
        _forbid(epoch < AWAY, f"MemberEpoch {epoch} is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.consumer_assignors:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. "
            f"Supported assignors: {', '.join(settings.consumer_assignors)}.",
        )
    if request.subscribed_topic_regex:
        require_pattern(request.subscribed_topic_regex)


def is_blank(text: str | None) -> bool:
    """Whether a text was sent and is blank."""
    return text is not None and not text.strip()


def is_complete(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields: then the answer has all, too."""
    return (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex))
    )


def _require_complete(request: ConsumerGroupHeartbeatRequest) -> None:
    _forbid(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided.")
    _forbid(
        request.topic_partitions is None or len(request.topic_partitions) > 0,
        "TopicPartitions must be empty when (re-)joining.",
    )
    _forbid(
        request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
        "SubscribedTopicNames or SubscribedTopicRegex must be set when (re-)joining.",
    )


def _forbid(condition: bool, words: str) -> None:
    if condition:
        raise OttlaError(ErrorCode.INVALID_REQUEST, words)
