"""How the brokers' log cleaners are, in sentences. Pure."""

from collections.abc import Iterable
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.cli.health import Finding, Trouble
from ottla.cli.moment import iso
from ottla.client.admin.compaction import CleanerStanding, FailedCleaning


def cleaner_findings(cleaners: Iterable[CleanerStanding]) -> list[Finding]:
    """Logs that cannot be cleaned, by broker and reason; and cleaners that are switched off."""
    found: list[Finding] = []
    for cleaner in cleaners:
        if cleaner.logs and not cleaner.threads:
            found.append(_switched_off(cleaner))
        by_reason: dict[str, list[FailedCleaning]] = {}
        for failed in cleaner.failed:
            by_reason.setdefault(failed.why, []).append(failed)
        found += [_failed(cleaner.broker_id, why, logs) for why, logs in by_reason.items()]
    return found


def cleaner_line(cleaner: CleanerStanding) -> str | None:
    """What a cleaner does, in a line; None where there is nothing to compact."""
    if not cleaner.logs:
        return None
    parts = [f"cleaner of broker {cleaner.broker_id}: {_counted(cleaner.logs, 'log')}"]
    parts.append(f"{cleaner.running} being compacted")
    parts.append(f"{cleaner.due} due" + (f" ({cleaner.due_bytes:,} bytes)" * bool(cleaner.due)))
    if cleaner.last is None:
        parts.append("no pass since the broker's start")
    else:
        took = f"in {cleaner.last_elapsed_ms / 1000:.1f} s"
        parts.append(f"last pass {cleaner.last} at {iso(cleaner.last_at_ms)} {took}")
    return ", ".join(parts)


def cleaner_row(cleaner: CleanerStanding) -> dict[str, Any]:
    """The same for programs."""
    last = None
    if cleaner.last is not None:
        last = {
            "partition": str(cleaner.last),
            "at": iso(cleaner.last_at_ms),
            "elapsed_ms": cleaner.last_elapsed_ms,
        }
    return {
        "broker": cleaner.broker_id,
        "enabled": cleaner.threads > 0,
        "logs": cleaner.logs,
        "running": cleaner.running,
        "due": cleaner.due,
        "due_bytes": cleaner.due_bytes,
        "passes": cleaner.passes,
        "failures": cleaner.failures,
        "last_pass": last,
        "failed": [
            {
                "partition": str(failed.name),
                "why": failed.why,
                "attempts": failed.attempts,
                "since": iso(failed.since_ms),
                "retry_at": iso(failed.retry_at_ms),
            }
            for failed in cleaner.failed
        ],
    }


def _switched_off(cleaner: CleanerStanding) -> Finding:
    return Finding(
        Trouble.NOT_COMPACTED,
        f"broker {cleaner.broker_id} compacts nothing, and {_counted(cleaner.logs, 'log')} of it "
        "would be: they grow for ever",
        "take log.cleaner.enable=false or log.cleaner.threads=0 out of its settings",
        (),
    )


def _failed(broker_id: int, why: str, logs: list[FailedCleaning]) -> Finding:
    attempts = max(failed.attempts for failed in logs)
    since, again = (
        iso(min(failed.since_ms for failed in logs)),
        iso(min(failed.retry_at_ms for failed in logs)),
    )
    names: tuple[TopicPartition, ...] = tuple(failed.name for failed in logs)
    return Finding(
        Trouble.NOT_COMPACTED,
        f"broker {broker_id} fails since {since}, {_counted(attempts, 'time')} in a row: {why}",
        f"nothing is lost, it grows; tried again at {again}, or at once by `ottla topic compact "
        f"{names[0].topic} --now`",
        names,
    )


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
