"""DescribeDecisions (key 1001, Ottla's own): why a partition is as it is, as one broker saw it.

Each broker keeps the latest decisions that it took itself, so the request is sent to all brokers.
Null `kinds` means all; the names of the kinds are in `ottla.metadata.decisions`.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class DescribeDecisionsRequest(Message, api_key=1001, versions="0", flexible="0+"):
    """A DescribeDecisions request."""

    topic: str = string()
    partition: int = int32()
    kinds: list[str] | None = array(string, nullable="0+")


class DescribedDecision(Message):
    """An element of `DescribeDecisionsResponse.decisions`, oldest first."""

    kind: str = string()
    broker_id: int = int32()
    leader_epoch: int = int32()
    cause: str = string()
    evidence: str = string()
    # Name of the setting that caused the decision, with its value if that is known.
    setting: str | None = string(nullable="0+")
    at_ms: int = int64()


class DescribeDecisionsResponse(Message, api_key=1001, versions="0", flexible="0+"):
    """A DescribeDecisions response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    decisions: list[DescribedDecision] = array(DescribedDecision)
