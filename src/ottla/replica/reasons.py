"""The evidence, in words, for a proposed change of the ISR."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ottla.base.ids import BrokerId
from ottla.replica.remote import Remote

# The evidence, and the decisive setting, or None if no setting was decisive.
Reason: TypeAlias = tuple[str, str | None]
BY_CONTROLLER: Reason = ("the controller changed it", None)


def leaving(
    log_end: int,
    late: Sequence[Remote],
    silent: Mapping[Remote, int],
    lag_ms_max: int,
    now_ms: int,
) -> Reason:
    """The evidence for a removal: `late` followers, and `silent` ones with their last contact."""
    evidence = f"log end {log_end}"
    if late:
        seen = (f"{r.broker_id}: {now_ms - r.caught_up_ms} ms ago" for r in late)
        evidence += f"; last caught up {', '.join(seen)}"
    if silent:
        contacts = (
            f"{r.broker_id}: {now_ms - at_ms} ms ago, caught up {now_ms - r.caught_up_ms} ms ago"
            for r, at_ms in silent.items()
        )
        evidence += f"; last heard of {', '.join(contacts)}"
    setting = f"replica.lag.time.max.ms={lag_ms_max}" if late else "broker.session.timeout.ms"
    return evidence, setting


def out_of_room(full: Remote, log_end: int) -> Reason:
    """The evidence for removing a follower whose disk is full."""
    return f"log end {log_end}; the disk of {full.broker_id} is full, its log ends {full.end}", None


def joining(remote: Remote, high_watermark: int, epoch_start: int) -> Reason:
    """The evidence for adding a follower."""
    follower = f"{remote.broker_id} (broker epoch {remote.broker_epoch}): end {remote.end}"
    return f"{follower}; high watermark {high_watermark}, epoch start {epoch_start}", None


def named(brokers: Sequence[BrokerId]) -> str:
    """The brokers as text: `[1, 2]`."""
    return "[" + ", ".join(str(broker) for broker in brokers) + "]"
