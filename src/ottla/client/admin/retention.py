"""Retention on Ottla's brokers: how long records stay, and which groups delay their deletion."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.wire.messages.log_cleaning import RetentionStandingResponse


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The least time that the record at `offset` stays, and the setting that limits it.

    `left_ms` None: no setting deletes it, or nothing is written there yet; 0: it may be deleted at
    any time.
    """

    offset: int
    left_ms: int | None
    setting: str | None


@dataclass(frozen=True, slots=True)
class RetentionStanding:
    """A partition's retention, from its leader. Sizes in bytes, times in ms, -1 for no limit.

    `readers` are the groups that delay deletion, with their committed offsets (-1: none or
    unknown); `held_bytes` are kept only for them, since `held_since_ms` (-1: no bytes are).
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
    """Convert a leader's answer to a value."""
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
