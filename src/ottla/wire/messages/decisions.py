"""Messages about the broker's recent decisions, and about the rebalances of a group."""

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string


class DescribeDecisionsRequest(Message, api_key=1001, versions="0", flexible="0+"):
    """DescribeDecisions (key 1001, Ottla's own): explain the state of a partition by decisions.

    Each broker remembers only its own latest decisions, so the request is sent to all brokers. Null
    `kinds` means all kinds; `ottla.metadata.decisions` has their names.
    """

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
    # The name of the setting that caused the decision, with its value if that is known.
    setting: str | None = string(nullable="0+")
    at_ms: int = int64()


class DescribeDecisionsResponse(Message, api_key=1001, versions="0", flexible="0+"):
    """A DescribeDecisions response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    decisions: list[DescribedDecision] = array(DescribedDecision)


class DescribeRebalancesRequest(Message, api_key=1004, versions="0", flexible="0+"):
    """DescribeRebalances (key 1004, Ottla's own): explain why a group rebalanced, and the cost.

    Each broker remembers only the latest rebalances of groups that it coordinated, so the request
    is sent to all brokers. `ottla.group.coordinator.flights` has the values of `ending`, and
    `ottla.group.values.notes` those of `kind`. Unknown numbers are -1.
    """

    group_id: str = string()


class RebalanceCause(Message):
    """An element of `DescribedRebalance.causes`, oldest first."""

    at_ms: int = int64()
    kind: str = string()
    # Empty if the cause was not a member.
    member_id: str = string()
    client_id: str = string()
    host: str = string()
    instance_id: str | None = string(nullable="0+")
    words: str = string()
    # The name of the setting that was the cause, with its value if that is known.
    setting: str | None = string(nullable="0+")
    # False if this cause alone would not have started a rebalance.
    is_trigger: bool = boolean()


class MemberWait(Message):
    """An element of `DescribedRebalance.waits`, longest first: a member's wait for partitions."""

    member_id: str = string()
    without_ms: int = int64()


class DescribedRebalance(Message):
    """An element of `DescribeRebalancesResponse.rebalances`, oldest first."""

    protocol: str = string()
    # The generation (classic protocol) or group epoch with which the rebalance ended.
    epoch: int = int32()
    began_ms: int = int64()
    ending: str = string()
    duration_ms: int = int64()
    # How long the coordinator waited for members to join (classic protocol), and the setting that
    # ended the wait; null if all members had joined.
    formed_ms: int = int64()
    ended_by: str | None = string(nullable="0+")
    members: int = int32()
    partitions: int = int32()
    # The number of partitions that moved to a member that did not own them before.
    moved: int = int32()
    causes: list[RebalanceCause] = array(RebalanceCause)
    causes_omitted: int = int32()
    # How many members had no partitions, the sum of these times, and the longest of these waits.
    without_members: int = int32()
    without_total_ms: int = int64()
    waits: list[MemberWait] = array(MemberWait)


class DescribeRebalancesResponse(Message, api_key=1004, versions="0", flexible="0+"):
    """A DescribeRebalances response; empty for a group that this broker never coordinated."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    rebalances: list[DescribedRebalance] = array(DescribedRebalance)
