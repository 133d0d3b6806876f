"""How long records stay, by Ottla's brokers, and for which groups retention waits."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.wire.messages.retention_standing import RetentionStandingResponse


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """How long the record at `offset` stays at least, and which setting limits it.

    `left_ms` None: nothing deletes it as the settings are, or nothing is written there yet; 0: it
    may be deleted at any time.
    """

    offset: int
    left_ms: int | None
    setting: str | None


@dataclass(frozen=True, slots=True)
class RetentionStanding:
    """A partition's retention, from its leader. Sizes in bytes, times in ms, -1 for no limit.

    `readers` are the groups that retention waits for, with what they have committed (-1: nothing,
    or not known); `held_bytes` is kept for them alone, since `held_since_ms` (-1: nothing is).
    """

    name: TopicPartition
    broker_id: int
    log_start_offset: int
    log_end_offset: int
    size_bytes: int
    bytes_per_second: float
    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    hold_max_bytes: int
    hold_max_ms: int
    times_left: tuple[TimeLeft, ...]
    readers: Mapping[str, int]
    held_bytes: int
    held_since_ms: int


def standing(name: TopicPartition, answer: RetentionStandingResponse) -> RetentionStanding:
    """A leader's answer as a value."""
    return RetentionStanding(
        name,
        answer.broker_id,
        answer.log_start_offset,
        answer.log_end_offset,
        answer.size_bytes,
        answer.bytes_per_second,
        answer.cleanup_policy,
        answer.retention_ms,
        answer.retention_bytes,
        answer.hold_max_bytes,
        answer.hold_max_ms,
        tuple(
            TimeLeft(one.offset, None if one.left_ms < 0 else one.left_ms, one.setting)
            for one in answer.deadlines
        ),
        {one.group_id: one.committed for one in answer.readers},
        answer.held_bytes,
        answer.held_since_ms,
    )
