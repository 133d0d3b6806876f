"""What spoke for a change of the ISR, in words."""

from collections.abc import Sequence

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica.isr import IsrChange
from ottla.replica.term import Term


def isr_reason(
    term: Term, before: PartitionImage, own: IsrChange | None, now_ms: int
) -> tuple[str, str | None]:
    """Evidence, and the setting that decided, of the step from `before` to what is committed.

    `own` is the leader's change that made it, None where the controller did.
    """
    if own is None:
        return "the controller changed it", None
    remotes = term.remotes
    left = [broker for broker in before.isr if broker not in term.isr]
    if left:
        late = [remotes[broker] for broker in left if broker in remotes]
        end = f"log end {term.log.log_end_offset}"
        if any(now_ms - r.caught_up_ms >= term.lag_ms_max for r in late):
            seen = (f"{r.broker_id}: {now_ms - r.caught_up_ms} ms ago" for r in late)
            evidence = f"{end}; last caught up {', '.join(seen)}"
            return evidence, f"replica.lag.time.max.ms={term.lag_ms_max}"
        seen = (f"{r.broker_id}: {now_ms - r.heard_ms} ms ago" for r in late)
        return f"{end}; last heard of {', '.join(seen)}", "broker.session.timeout.ms"
    joined = (remotes[broker] for broker, _ in own.joining if broker in remotes)
    seen = (f"{r.broker_id} (broker epoch {r.broker_epoch}): end {r.end}" for r in joined)
    floor = f"high watermark {term.high_watermark}, epoch start {term.epoch_start}"
    return f"{', '.join(seen)}; {floor}", None


def named(brokers: Sequence[BrokerId]) -> str:
    """`[1, 2]`."""
    return "[" + ", ".join(str(broker) for broker in brokers) + "]"
