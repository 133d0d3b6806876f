"""What became of one offset: whether its record is there, and else what removed it, and when."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso, span_words
from ottla.client.admin import Admin
from ottla.client.common.errors import BrokerRefused
from ottla.client.common.offset_account import DeletionEvidence, OffsetAccount
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.diagnosis.retention import losses
from ottla.ledger.history import StartCause
from ottla.metadata.decisions import DecisionKind

_HAPPENED = {
    "data": "it is there: its record can be read",
    "control": "it is there, but it is the marker that ended a transaction, not a record",
    "aborted": "its record is there, but its transaction was aborted: read_committed skips it",
    "undecided": "its record is there, but its transaction is open: read_committed waits for it",
    "compacted": "compaction removed it",
    "deleted": "it was deleted",
    "lost": "it was lost by an unclean election",
    "absent": "the log never had it",
    "unexplained": "it is missing, and no note of the broker explains why",
}
_TERMS = ("lost", "deleted", "compacted", "unexplained", "aborted", "undecided", "control", "data")


@dataclass(frozen=True, slots=True)
class DeletionDiagnosis:
    """What became of an offset: `fate` is a term of the ledger, or `absent`.

    `at_ms` is when it happened; None if it is not known, or if nothing happened.
    """

    name: TopicPartition
    offset: int
    fate: str
    words: str
    at_ms: int | None
    evidence: tuple[str, ...]


async def deletion_of(admin: Admin, name: TopicPartition, offset: int) -> DeletionDiagnosis:
    """Return what became of `offset` by the leader's ledger.

    Raises UnknownTopic, UnsupportedByBroker if the leader is not Ottla's.
    """
    try:
        account = await admin.logs.account(name, offset, offset + 1)
    except BrokerRefused as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        return await _absent(admin, name, offset)
    return explained(account)


def explained(account: OffsetAccount) -> DeletionDiagnosis:
    """Return what became of the only offset of an account."""
    fate = next(term for term in _TERMS if getattr(account, term))
    found = list(_evidence(account))
    at_ms = max((one.at_ms for one in losses(account)), default=-1)
    return DeletionDiagnosis(
        account.name,
        account.start,
        fate,
        _HAPPENED[fate],
        at_ms if at_ms >= 0 else None,
        tuple(found),
    )


def _evidence(account: OffsetAccount) -> Iterator[str]:
    for one in losses(account):
        if one.term == "compacted":
            yield (
                f"removed by {one.cause} of the cleaner: a later record has the same key, or it "
                "was a tombstone past delete.retention.ms"
            )
        elif one.term in ("lost", "replaced"):
            yield f"{one.term}: {one.cause}"
    for deleted in account.deleted_by:
        causes = " or ".join(cause.words for cause in deleted.counts)
        yield f"deleted with offsets {deleted.start} to {deleted.end}, by {causes}"
        if StartCause.LEADER in deleted.counts or StartCause.WHOLE in deleted.counts:
            yield "this replica copied its leader's log; an earlier leader may have decided it"
    for evidence in account.evidence:
        yield from _decided(evidence)


def _decided(one: DeletionEvidence) -> Iterator[str]:
    if not one.by.startswith("retention."):
        yield f"{one.by} asked for it (DeleteRecords)"
        return
    yield f"decided by {one.by}"
    if one.newest_ms < 0 or one.arrived_ms < 0:
        return
    yield (
        f"the newest record of its segment, offsets {one.start} to {one.end}, has the timestamp "
        f"{iso(one.newest_ms)} and arrived before {iso(one.arrived_ms)}"
    )
    lived_ms = max(0, one.at_ms - one.arrived_ms)
    if one.by.startswith("retention.ms") and one.arrived_ms - one.newest_ms > lived_ms:
        yield (
            f"so it was kept for only {_span(lived_ms)}, because its timestamp was already "
            f"{_span(one.arrived_ms - one.newest_ms)} old: mend the producer's timestamps, or "
            "count from arrival with ottla.retention.by=append"
        )


def _span(span_ms: int) -> str:
    """Return a span in words; from one second on, in whole seconds."""
    return span_words(span_ms - span_ms % 1000 if span_ms >= 1000 else span_ms)


async def _absent(admin: Admin, name: TopicPartition, offset: int) -> DeletionDiagnosis:
    """Describe an offset beyond the log: it was never written, or the topic was created again."""
    start = (await admin.logs.offsets({name: EARLIEST}))[name].offset
    end = (await admin.logs.offsets({name: LATEST}))[name].offset
    evidence = [f"the log holds offsets {start} to {end}"]
    story = await admin.decisions.describe(name, [DecisionKind.CREATED])
    evidence += [
        f"the topic was created at {iso(one.at_ms)}: if a consumer knew the offset before, the "
        "topic was deleted and created again"
        for one in story.records[-1:]
    ]
    if not story.records:
        evidence.append("no broker remembers when the topic was created; it may be a new one")
    return DeletionDiagnosis(name, offset, "absent", _HAPPENED["absent"], None, tuple(evidence))
