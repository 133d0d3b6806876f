"""Elects leaders: from the ISR, the ELR, the last known ELR, or uncleanly if that is enabled.

The leader epoch is raised with each change of the leader, and with each restart of a leader: a
broker must not write in the same leader epoch under two registrations, since it may have sent
records to followers that it lost in the restart.

`live` maps each broker that can lead to its broker epoch.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.in_sync import with_members, without_eligibility, without_members


class How(StrEnum):
    """How a leader was elected. Decision records contain these texts."""

    IN_SYNC = "in sync"
    ELIGIBLE = "eligible"
    LAST_KNOWN = "last known eligible"
    UNCLEAN = "unclean"
    PREFERRED = "preferred"
    SHUTDOWN = "controlled shutdown"
    REASSIGNMENT = "reassignment"
    NO_LEADER = "nobody can lead"


@dataclass(frozen=True, slots=True)
class Rules:
    """A topic's election settings: `min.insync.replicas`, `unclean.leader.election.enable`."""

    min_isr: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A new state, with the version of the state from which it was decided.

    `after.version` is the version expected in the store; the writer sets the nonce.
    `how` is None if the leader does not change.
    """

    after: PartitionImage
    how: How | None
    # The event, the observed state, and the decisive setting, if there is one.
    cause: str
    evidence: str
    setting: str | None = None


Live = Mapping[BrokerId, int]

_MIN_ISR = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"


def settle(partition: PartitionImage, live: Live, rules: Rules, *, cause: str) -> Change | None:
    """Give a partition an ISR and a leader among the live brokers; None means no change.

    Dead members leave the ISR, and a partition whose leader is dead, restarted or missing gets
    a new one. Used when a broker dies, returns or restarts, and by a new controller.
    """
    dead = tuple(broker for broker in partition.isr if broker not in live)
    alone = without_members(partition, dead, rules.min_isr) if dead else partition
    if _leads(partition, live):
        if alone == partition:
            return None
        return Change(alone, None, cause, f"{_named(dead)} left the ISR", _why_eligible(alone))
    return _elected(partition, alone, live, rules, cause)


def lose(
    partition: PartitionImage, lossy: Collection[BrokerId], live: Live, rules: Rules, *, cause: str
) -> Change | None:
    """Remove brokers with an unclean stop from ISR and ELR (R-6, R-11), and settle.

    They are in `live` again, but may lack records until they have caught up.
    """
    doubtful = [b for b in lossy if b in partition.isr or b in partition.elr]
    if not doubtful:
        return settle(partition, live, rules, cause=cause)
    cleared = without_eligibility(partition, doubtful, rules.min_isr)
    dead = tuple(broker for broker in cleared.isr if broker not in live)
    alone = without_members(cleared, dead, rules.min_isr)
    if partition.leader not in doubtful and _leads(partition, live):
        evidence = f"{_named(doubtful)} stopped uncleanly and left the ISR"
        return Change(alone, None, cause, evidence)
    return _elected(partition, alone, live, rules, cause)


def found_cause(partition: PartitionImage, live: Live, controller: BrokerId) -> str:
    """The likely cause of the state in which `controller` finds a partition.

    A new controller did not see brokers die: it can only find out which members are missing now.
    """
    gone = [broker for broker in partition.isr if broker not in live]
    if partition.leader != NO_LEADER and partition.leader not in (*live, *gone):
        gone.append(partition.leader)
    found = f"when broker {controller}, the controller, read the cluster's state"
    if gone:
        many = len(gone) > 1
        return f"broker{'s' * many} {_list(gone)} died: not registered {found}"
    if partition.leader != NO_LEADER and not _leads(partition, live):
        return f"broker {partition.leader} restarted: registered anew {found}"
    return f"broker {controller} became the controller"


def prefer(partition: PartitionImage, live: Live, *, cause: str) -> Change:
    """Make the first replica the leader.

    Raises OttlaError if it leads already, is dead, or is not in the ISR (S19).
    """
    preferred = partition.replicas[0]
    if partition.leader == preferred and _leads(partition, live):
        raise OttlaError(
            ErrorCode.ELECTION_NOT_NEEDED, f"the preferred leader {preferred} leads already"
        )
    if preferred not in live:
        raise OttlaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader {preferred} is not alive; start it first",
        )
    if preferred not in partition.isr:
        raise OttlaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader {preferred} is not in the ISR {_named(partition.isr)}: it "
            "would lose records; wait until it has caught up",
        )
    evidence = f"{preferred} is the first replica and in the ISR {_named(partition.isr)}"
    return Change(led(partition, preferred, live), How.PREFERRED, cause, evidence)


def elect_unclean(partition: PartitionImage, live: Live, rules: Rules, *, cause: str) -> Change:
    """Elect a leader even if records are lost.

    Raises OttlaError if the partition has a leader, or no live replica.
    """
    if _leads(partition, live):
        raise OttlaError(
            ErrorCode.ELECTION_NOT_NEEDED, f"{partition.leader} leads: nothing is to be elected"
        )
    change = settle(partition, live, replace(rules, unclean=True), cause=cause)
    if change is None or change.after.leader == NO_LEADER:
        raise OttlaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"none of the replicas {_named(partition.replicas)} is alive; start one of them",
        )
    return change


class LogReach(NamedTuple):
    """A log's latest leader epoch (-1 for none), and its start and end offsets."""

    latest_epoch: int
    end_offset: int
    start_offset: int


def recover(
    partition: PartitionImage,
    reaches: Mapping[BrokerId, LogReach],
    live: Live,
    *,
    cause: str,
) -> Change | None:
    """Elect from the last known ELR the replica with the highest (latest epoch, log end offset).

    The latest epoch is the last one in the log's leader epochs, not that of its last record, since
    a log must not look older when its records are deleted. Only committed records are ever deleted.
    So a log that ends below another's log start lacks committed records, whatever its epoch.

    At least one replica of the last known ELR has all committed records, so the election waits for
    all: the result is None until `reaches` has an entry for each of them.
    """
    known = partition.last_known_elr
    if not may_recover(partition, live) or any(broker not in reaches for broker in known):
        return None
    deleted_below = max(reaches[broker].start_offset for broker in known)
    complete = [broker for broker in known if reaches[broker].end_offset >= deleted_below]
    best = max(complete, key=lambda broker: (reaches[broker][:2], -known.index(broker)))
    compared = ", ".join(
        f"{broker}: epoch {reach.latest_epoch}, {reach.start_offset} to {reach.end_offset}"
        for broker, reach in ((broker, reaches[broker]) for broker in known)
    )
    alone = partition._replace(isr=(best,), elr=())
    return Change(led(alone, best, live), How.LAST_KNOWN, cause, f"the furthest of {compared}")


def may_recover(partition: PartitionImage, live: Live) -> bool:
    """Whether ISR and ELR are empty, and all of the last known ELR are live again."""
    return (
        partition.leader == NO_LEADER
        and not partition.isr
        and not partition.elr
        and bool(partition.last_known_elr)
        and all(broker in live for broker in partition.last_known_elr)
    )


def led(partition: PartitionImage, leader: BrokerId, live: Live) -> PartitionImage:
    """Return the state in the next leader epoch with `leader`, a live ISR member, as the leader.

    The last known ELR is kept until the leader itself writes the state: the leader may have died by
    now, for example if all brokers lost power.
    """
    assert leader in partition.isr, f"{leader} is not in the ISR {partition.isr}"
    return partition._replace(
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        leader_broker_epoch=live[leader],
    )


def _leads(partition: PartitionImage, live: Live) -> bool:
    """Whether the leader is alive and has not restarted since its election."""
    return live.get(partition.leader) == partition.leader_broker_epoch


def _elected(
    before: PartitionImage, partition: PartitionImage, live: Live, rules: Rules, cause: str
) -> Change | None:
    candidates = [broker for broker in partition.replicas if broker in live]
    # A replica that is still being added has the shortest log.
    candidates.sort(key=lambda broker: broker in partition.adding)
    for broker in candidates:
        if broker in partition.isr:
            evidence = f"{broker} is the first live replica in the ISR {_named(partition.isr)}"
            return Change(led(partition, broker, live), How.IN_SYNC, cause, evidence)
    for broker in candidates:
        if broker in partition.elr:
            joined = with_members(partition, (broker,), rules.min_isr)
            evidence = f"{broker} is the first live replica in the ELR {_named(partition.elr)}"
            return Change(led(joined, broker, live), How.ELIGIBLE, cause, evidence, _MIN_ISR)
    known = partition.last_known_elr
    if len(known) == 1 and may_recover(partition._replace(leader=NO_LEADER), live):
        alone = partition._replace(isr=known)
        evidence = f"{known[0]} is the only one that was in sync or eligible last"
        return Change(led(alone, known[0], live), How.LAST_KNOWN, cause, evidence)
    if candidates and rules.unclean:
        return _unclean(partition, candidates, live, cause)
    return _offline(before, partition, cause)


def _unclean(
    partition: PartitionImage, candidates: list[BrokerId], live: Live, cause: str
) -> Change:
    known = [broker for broker in candidates if broker in partition.last_known_elr]
    broker = (known or candidates)[0]
    waited = partition.isr + partition.elr + partition.last_known_elr
    evidence = f"{broker} is alive, and none of {_named(waited)} that were in sync or eligible"
    alone = partition._replace(isr=(broker,), elr=(), last_known_elr=())
    elected = led(alone, broker, live)
    elected = elected._replace(unclean_epoch=elected.leader_epoch)
    return Change(elected, How.UNCLEAN, cause, evidence, _UNCLEAN)


def _offline(before: PartitionImage, partition: PartitionImage, cause: str) -> Change | None:
    after = partition
    if partition.leader != NO_LEADER:
        after = partition._replace(
            leader=NO_LEADER,
            leader_epoch=partition.leader_epoch + 1,
            leader_broker_epoch=0,
        )
    if after == before:
        return None
    waited = after.isr + after.elr or after.last_known_elr
    evidence = f"none of {_named(waited)} that could lead is alive"
    return Change(after, How.NO_LEADER, cause, evidence, _UNCLEAN)


def _why_eligible(partition: PartitionImage) -> str | None:
    return _MIN_ISR if partition.elr else None


def _named(brokers: Collection[BrokerId]) -> str:
    return f"[{_list(brokers)}]"


def _list(brokers: Collection[BrokerId]) -> str:
    return ", ".join(map(str, brokers))


def imbalance(partitions: Iterable[PartitionImage]) -> dict[BrokerId, float]:
    """Return, by preferred leader, the share of its partitions that it does not lead, 0 to 1."""
    owned: dict[BrokerId, int] = {}
    away: dict[BrokerId, int] = {}
    for partition in partitions:
        preferred = partition.replicas[0]
        owned[preferred] = owned.get(preferred, 0) + 1
        if partition.leader != preferred:
            away[preferred] = away.get(preferred, 0) + 1
    return {broker: away.get(broker, 0) / count for broker, count in owned.items()}


def to_return(
    partitions: Mapping[TopicPartition, PartitionImage],
    live: Mapping[BrokerId, int],
    percentage: int,
) -> list[TopicPartition]:
    """Return the partitions to give back to their preferred leaders.

    These are partitions whose preferred leader can lead, and has an imbalance above `percentage`,
    the setting `leader.imbalance.per.broker.percentage`.
    """
    shares = imbalance(partitions.values())
    return [
        name
        for name, partition in partitions.items()
        if partition.leader != partition.replicas[0]
        and partition.replicas[0] in live
        and partition.replicas[0] in partition.isr
        and not partition.is_moving
        and shares[partition.replicas[0]] * 100 > percentage
    ]


def move_away(
    partition: PartitionImage, stopping: BrokerId, live: Live, rules: Rules, *, cause: str
) -> Change | None:
    """Remove a stopping broker from the ISR, and elect another leader if it leads.

    Returns None if it is not in the ISR, or if no other ISR member is live. `live` excludes the
    stopping brokers. Only an ISR member is elected: if there is none, the broker leads until it
    stops, so that no record is lost.
    """
    others = [b for b in partition.replicas if b in partition.isr and b in live and b != stopping]
    if stopping not in partition.isr or not others:
        return None
    alone = without_members(partition, (stopping,), rules.min_isr)
    setting = "min.insync.replicas" if alone.elr else None
    if partition.leader != stopping:
        return Change(alone, None, cause, f"{stopping} stops and left the ISR", setting)
    evidence = f"{others[0]} is the first live replica in the ISR beside {stopping}"
    return Change(led(alone, others[0], live), How.SHUTDOWN, cause, evidence, setting)


def without(live: Live, stopping: Collection[BrokerId]) -> Mapping[BrokerId, int]:
    """Return the live brokers without the stopping ones, which must not be elected."""
    return {broker: epoch for broker, epoch in live.items() if broker not in stopping}


def still_led(partition: PartitionImage, stopping: BrokerId) -> bool:
    """Whether the stopping broker still leads a partition that has other replicas.

    The answer to ControlledShutdown names these, so that the broker asks again or gives up.
    """
    return partition.leader == stopping and len(partition.replicas) > 1
