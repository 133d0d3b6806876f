"""The effects that a partition's cores ask their shell to carry out, in the order given.

A `metadata.decisions.Decision` among the effects is to be recorded.
"""

from dataclasses import dataclass
from typing import TypeAlias

from ottla.base.errors import ErrorCode
from ottla.metadata.decisions import Decision
from ottla.replica.isr import IsrChange


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Records below `high_watermark` are committed: answer the requests that wait for them."""

    high_watermark: int


# ---------------------------------------------------------------- of the leader


@dataclass(frozen=True, slots=True)
class ServeFrom:
    """Answer the fetch with records from the requested offset.

    Always the last effect of a fetch.
    """


@dataclass(frozen=True, slots=True)
class Diverging:
    """Answer the fetch with `diverging_epoch`: the leader's log has `epoch` up to `end_offset`."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the fetch with an error and the leader's log start offset.

    A fetch that was overtaken by a later one may get any error: its sender ignores the answer.
    """

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Make the ISR change in the store and report its outcome, identified by its nonce.

    Report success by `on_state(change.committed(version))`, a rejection by `on_isr_rejected`, and
    an unknown outcome by `on_isr_unknown`.
    """

    change: IsrChange


@dataclass(frozen=True, slots=True)
class ReadState:
    """Read the partition's state until the store answers, and call `on_state_read`."""


@dataclass(frozen=True, slots=True)
class BelowMinIsr:
    """Fail waiting produces with NOT_ENOUGH_REPLICAS_AFTER_APPEND: the ISR is too small."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Stop leading, as another broker leads or may lead.

    Fail waiting requests with NOT_LEADER_OR_FOLLOWER.
    """


# ---------------------------------------------------------------- of the follower


@dataclass(frozen=True, slots=True)
class Append:
    """Append the answer's records at the log's end, then call `on_appended`."""


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Truncate the log to `end_offset`: the leader of our epoch has other records from there."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Delete the whole log, and continue with an empty log at `offset`, the leader's log start.

    Then record in the log's leader epochs that the leader's epoch begins there. An empty log has no
    records that show its latest epoch.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class AdvanceLogStart:
    """Advance the log start to the leader's: records below `offset` become unreadable."""

    offset: int


LeaderEffect: TypeAlias = (
    AdvanceHighWatermark
    | ServeFrom
    | Diverging
    | Refuse
    | ProposeIsr
    | ReadState
    | BelowMinIsr
    | Resign
    | Decision
)
FollowerEffect: TypeAlias = (
    AdvanceHighWatermark | Append | TruncateTo | RestartAt | AdvanceLogStart | Decision
)

# The most frequent outcomes, allocated once so that a fetch without change allocates nothing.
SERVE: tuple[LeaderEffect, ...] = (ServeFrom(),)
APPEND: tuple[FollowerEffect, ...] = (Append(),)
FENCED: tuple[LeaderEffect, ...] = (Refuse(ErrorCode.FENCED_LEADER_EPOCH),)
UNKNOWN: tuple[LeaderEffect, ...] = (Refuse(ErrorCode.UNKNOWN_LEADER_EPOCH),)
NOT_LEADER: tuple[LeaderEffect, ...] = (Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),)
OVERTAKEN: tuple[LeaderEffect, ...] = (Refuse(ErrorCode.INVALID_FETCH_SESSION_EPOCH),)
OUT_OF_RANGE: tuple[LeaderEffect, ...] = (Refuse(ErrorCode.OFFSET_OUT_OF_RANGE),)
