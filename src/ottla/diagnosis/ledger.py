"""Lists the offsets of a partition without records, by cause. Pure."""

from dataclasses import dataclass

from ottla.client.ranges.account import CompactedBy, OffsetAccount


@dataclass(frozen=True, slots=True)
class OffsetLoss:
    """Offsets lost to one cause. `at_ms` -1: the time is unknown."""

    term: str
    offsets: int
    cause: str
    at_ms: int


def losses(account: OffsetAccount) -> list[OffsetLoss]:
    """Each loss of offsets that the account names, by term: compacted, deleted, lost, replaced."""
    found = [
        OffsetLoss("compacted", one.count, _pass(one), one.at_ms) for one in account.compacted_by
    ]
    found += [
        OffsetLoss("deleted", count, f"{cause.words}, {one.start} to {one.end}", one.last_ms)
        for one in account.deleted_by
        for cause, count in one.counts.items()
    ]
    found += [
        OffsetLoss(
            "lost",
            one.end - one.start,
            f"election of epoch {one.leader_epoch}, {one.start} to {one.end}",
            one.at_ms,
        )
        for one in account.lost_by
    ]
    if account.replaced:
        cause = "lost offsets that are other records now, counted as those"
        found.append(OffsetLoss("replaced", account.replaced, cause, -1))
    return found


def _pass(one: CompactedBy) -> str:
    if one.number == 0:
        return "a leader, before this replica was copied from it"
    if one.number < 0:
        return "before the ledger was kept"
    if one.since < one.number:
        return f"passes {one.since} to {one.number}"
    return f"pass {one.number}"
