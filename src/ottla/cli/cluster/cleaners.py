"""Log cleaners in the output of `ottla cluster health`: a line for people, a row for programs."""

from typing import Any

from ottla.base.quantities import counted, iso
from ottla.client.admin.compaction import CleanerStanding


def cleaner_line(cleaner: CleanerStanding) -> str | None:
    """A cleaner's state in one line; None if it has nothing to compact."""
    if not cleaner.logs:
        return None
    parts = [f"cleaner of broker {cleaner.broker_id}: {counted(cleaner.logs, 'log')}"]
    parts.append(f"{cleaner.running} being compacted")
    parts.append(f"{cleaner.due} due" + (f" ({cleaner.due_bytes:,} bytes)" * bool(cleaner.due)))
    if cleaner.last is None:
        parts.append("no pass since the broker's start")
    else:
        took = f"in {cleaner.last_elapsed_ms / 1000:.1f} s"
        parts.append(f"last pass {cleaner.last} at {iso(cleaner.last_at_ms)} {took}")
    return ", ".join(parts)


def cleaner_row(cleaner: CleanerStanding) -> dict[str, Any]:
    """The whole state of a broker's cleaner."""
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
