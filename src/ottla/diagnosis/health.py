"""Finds partitions with problems, and gives causes and remedies in sentences. Pure.

There are four kinds of trouble: under-replicated (a replica is not in sync), offline (no leader),
under min ISR (acks=all is refused), and at min ISR (acks=all is refused if one more replica leaves
the ISR). A partition may have several; it is reported once, with the worst.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.base.quantities import size_words
from ottla.client.admin.logs import LogDirectory
from ottla.client.admin.partitions import PartitionStatus
from ottla.storage.disk.reserve import reserve_bytes


class Trouble(StrEnum):
    """The kinds of trouble, in the order in which they are listed."""

    DIRECTORY_OFFLINE = "log directory offline"
    DISK_FULL = "disk full"
    DISK_ALMOST_FULL = "disk almost full"
    UNDER_REPLICATED = "under-replicated"
    OFFLINE = "offline"
    UNDER_MIN_ISR = "under min ISR"
    AT_MIN_ISR = "at min ISR"
    TOO_FEW_REPLICAS = "too few replicas"
    NOT_COMPACTED = "not compacted"
    NO_CONTROLLER = "no controller"


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Partitions with the same trouble and cause, and the remedy. Sentences lack the full stop."""

    trouble: Trouble
    cause: str
    remedy: str
    partitions: tuple[TopicPartition, ...]


# A disk that has less free space than one batch needs, beyond its reserve, refuses appends.
_BATCH_BYTES = 1 << 20
# A disk is almost full if its free space is below both this size and this share of the disk.
_SCARCE_BYTES = 1 << 30
_SCARCE_SHARE = 0.02

_MAKE_ROOM = (
    "free space on that disk, shorten retention (`ottla config set topic NAME retention.ms=1d`) "
    "or delete a topic; what is deleted leaves a full disk within seconds, others after "
    "file.delete.delay.ms"
)


def disk_findings(directories: Iterable[LogDirectory]) -> list[HealthFinding]:
    """Report log directories that refuse appends, or will soon: offline, full, almost full."""
    found = [_finding(one) for one in directories]
    return [finding for finding in found if finding is not None]


def _finding(one: LogDirectory) -> HealthFinding | None:
    where = f"{one.path} of broker {one.broker_id}"
    if one.error is not ErrorCode.NONE:
        return HealthFinding(
            Trouble.DIRECTORY_OFFLINE,
            f"{where} failed and serves nothing",
            "see the broker's log for what failed, check the disk, then restart the broker",
            (),
        )
    usable, total = one.usable_bytes, one.total_bytes
    if usable < 0:
        return None  # The broker does not report space: DescribeLogDirs before version 4.
    reserve = reserve_bytes(total)
    if usable < reserve + _BATCH_BYTES:
        return HealthFinding(
            Trouble.DISK_FULL,
            f"{where} has {size_words(usable)} left, and {size_words(reserve)} are reserved for "
            "deletions and restarts: what needs more is refused with KAFKA_STORAGE_ERROR, reads "
            "go on",
            f"{_MAKE_ROOM}. Appends are accepted again once there is room",
            (),
        )
    if usable < max(min(_SCARCE_BYTES, total * _SCARCE_SHARE), 2 * reserve):
        share = f"{usable / total:.1%} of {size_words(total)}"
        return HealthFinding(
            Trouble.DISK_ALMOST_FULL,
            f"{where} has {size_words(usable)} left, {share}: appends are refused when it is full",
            _MAKE_ROOM,
            (),
        )
    return None


def counts(standings: Iterable[PartitionStatus]) -> dict[str, int]:
    """Return the number of partitions per trouble; an offline one is also under min ISR."""
    every = list(standings)
    return {
        "under_replicated": sum(one.is_under_replicated for one in every),
        "offline": sum(one.is_offline for one in every),
        "under_min_isr": sum(one.is_under_min_isr for one in every),
        "at_min_isr": sum(one.is_at_min_isr for one in every),
    }


def findings(
    standings: Iterable[PartitionStatus],
    live: Collection[int],
    moving: Collection[TopicPartition] = (),
    *,
    has_controller: bool = True,
) -> list[HealthFinding]:
    """Report all partitions with trouble; `moving` are those with a reassignment in progress."""
    every = list(standings)
    widest = max((len(one.replicas) for one in every), default=0)
    grouped: dict[tuple[Trouble, str, str], list[TopicPartition]] = {}
    for one in every:
        trouble = _worst(one)
        if trouble is None:
            continue
        cause, remedy = _explained(trouble, one, live, widest, is_moving=one.name in moving)
        grouped.setdefault((trouble, cause, remedy), []).append(one.name)
    order = list(Trouble)
    found = [
        HealthFinding(trouble, cause, remedy, tuple(names))
        for (trouble, cause, remedy), names in grouped.items()
    ]
    found.sort(key=lambda finding: (order.index(finding.trouble), -len(finding.partitions)))
    if not has_controller:
        found.append(
            HealthFinding(
                Trouble.NO_CONTROLLER,
                "no broker is controller, so no leader is elected and no topic deleted",
                "see whether the brokers reach their store (coordination.connect); their logs say",
                (),
            )
        )
    return found


def _worst(one: PartitionStatus) -> Trouble | None:
    if one.is_offline:
        return Trouble.OFFLINE
    if one.is_under_min_isr:
        return Trouble.UNDER_MIN_ISR
    if one.is_at_min_isr:
        return Trouble.AT_MIN_ISR
    return Trouble.UNDER_REPLICATED if one.is_under_replicated else None


def _explained(
    trouble: Trouble,
    one: PartitionStatus,
    live: Collection[int],
    widest: int,
    *,
    is_moving: bool,
) -> tuple[str, str]:
    """Return cause and remedy. `widest` is the largest number of replicas of any partition."""
    if trouble is Trouble.OFFLINE:
        return _offline(one, live)
    cause, remedy = _missing(one, live, widest, is_moving=is_moving)
    needed = f"{len(one.isr)} in sync and min.insync.replicas needs {one.min_isr}"
    if trouble is Trouble.UNDER_MIN_ISR:
        return f"{cause}; {needed}, so that acks=all is refused", remedy
    if trouble is Trouble.AT_MIN_ISR:
        next_loss = "the partition is offline" if one.min_isr == 1 else "acks=all is refused"
        return f"{cause}; {needed}: one more that leaves, and {next_loss}", remedy
    return cause, remedy


def _missing(
    one: PartitionStatus, live: Collection[int], widest: int, *, is_moving: bool
) -> tuple[str, str]:
    """Return the cause and remedy for replicas that are not in sync."""
    out = sorted(broker for broker in one.replicas if broker not in one.isr)
    down = [broker for broker in out if broker not in live]
    if down:
        return f"{_brokers(down)} down", _without(down, len(live), widest)
    if is_moving:
        return (
            f"the partition moves, and {_brokers(out)} copying it",
            "wait: `ottla partition status`",
        )
    return (
        f"{_brokers(out)} alive and not in sync",
        f"it catches up or is too slow: `ottla why isr {one.name}` says which",
    )


def _without(down: Sequence[int], live: int, widest: int) -> str:
    """Return the remedy if brokers are down. A drain needs a live broker for every replica."""
    again = f"start {_named(down)} again"
    if live < widest:
        return (
            f"{again}; to do without {'it' if len(down) == 1 else 'one'}, start another broker "
            f"first: {live} alive cannot hold {widest} replicas"
        )
    if len(down) == 1:
        return f"{again}, or do without it: `ottla broker drain {down[0]}`"
    return f"{again}, or do without one: `ottla broker drain ID`"


def _offline(one: PartitionStatus, live: Collection[int]) -> tuple[str, str]:
    safe = [*one.isr, *(broker for broker in one.elr if broker not in one.isr)]
    unclean = (
        f"`ottla partition elect --unclean {one.name}` elects another replica and may lose records"
    )
    others = any(broker in live for broker in one.replicas if broker not in safe)
    last = f"; {unclean}" if others else ""
    waiting = [broker for broker in safe if broker not in live]
    if safe and len(waiting) == len(safe):
        which = _named(waiting) if len(waiting) == 1 else f"one of {_list(waiting)}"
        return (
            f"{_brokers(waiting)} down, and no other broker has all acknowledged records",
            f"start {which}{last}",
        )
    if not safe and one.last_known_elr:
        missing = [broker for broker in one.last_known_elr if broker not in live]
        return (
            f"every replica that was in sync stopped uncleanly, {_list(one.last_known_elr)} last",
            f"start {_named(missing)}: with all of them back the longest log leads{last}"
            if missing
            else f"see `ottla why leader {one.name}`{last}",
        )
    return "it has no leader", f"an election is due: `ottla why leader {one.name}` says more{last}"


def _brokers(ids: Sequence[int]) -> str:
    """Return `broker 3 is`, `brokers 1 and 3 are`."""
    return f"{_named(ids)} {'is' if len(ids) == 1 else 'are'}"


def _named(ids: Sequence[int]) -> str:
    """Return `broker 3`, `brokers 1 and 3`."""
    return f"broker{'' if len(ids) == 1 else 's'} {_list(ids)}"


def _list(ids: Sequence[int]) -> str:
    *first, last = map(str, ids)
    return f"{', '.join(first)} and {last}" if first else last
