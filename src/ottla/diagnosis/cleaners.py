"""What is wrong with the brokers' log cleaners, in sentences. Pure."""

from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, iso
from ottla.client.admin.compaction import CleanerStanding, FailedCleaning
from ottla.diagnosis.findings import Finding, Trouble


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


def _switched_off(cleaner: CleanerStanding) -> Finding:
    return Finding(
        Trouble.NOT_COMPACTED,
        f"broker {cleaner.broker_id} compacts nothing, and {counted(cleaner.logs, 'log')} of it "
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
        f"broker {broker_id} fails since {since}, {counted(attempts, 'time')} in a row: {why}",
        f"nothing is lost, it grows; tried again at {again}, or at once by `ottla topic compact "
        f"{names[0].topic} --now`",
        names,
    )
