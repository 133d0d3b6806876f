"""Failures that end by themselves once brokers are back or leaders are elected. Pure."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import ConnectionFailed, RequestTimedOut

_LEADERLESS = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


def is_outage(error: OttlaError) -> bool:
    """Return whether brokers or leaders are away, which is waited for as long as it takes."""
    return isinstance(error, ConnectionFailed | RequestTimedOut) or error.code in _LEADERLESS
