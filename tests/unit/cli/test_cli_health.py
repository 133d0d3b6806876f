"""What a cluster's health is said to be."""

from ottla.base.ids import TopicPartition
from ottla.cli.health import Finding, Trouble, counts, findings
from ottla.client.admin.partitions import PartitionStanding
from ottla.client.view import NO_LEADER


def standing(
    leader: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    min_isr: int = 2,
    *,
    index: int = 0,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
) -> PartitionStanding:
    name = TopicPartition("t", index)
    return PartitionStanding(name, leader, 4, replicas, isr, min_isr, elr, last_known)


def only(found: list[Finding]) -> tuple[Trouble, str, str]:
    (finding,) = found
    return finding.trouble, finding.cause, finding.remedy


def test_all_is_well() -> None:
    """Nothing is found, and nothing counts."""
    well = [standing(1, (1, 2, 3), (1, 2, 3)), standing(1, (1,), (1,), 1)]
    assert findings(well, {1, 2, 3}) == []
    assert set(counts(well).values()) == {0}


def test_the_numbers_nest_and_each_partition_is_told_once_under_the_worst() -> None:
    """Three brokers of which 3 is down."""
    cluster = [
        standing(1, (1, 2, 3), (1, 2), 1, index=0),
        standing(1, (1, 2, 3), (1, 2), 2, index=1),
        standing(1, (1, 3), (1,), 2, index=2),
        standing(NO_LEADER, (3,), (3,), 1, index=3),
    ]
    assert counts(cluster) == {
        "under_replicated": 3,
        "offline": 1,
        "under_min_isr": 2,
        "at_min_isr": 1,
    }
    found = findings(cluster, {1, 2})
    assert [(f.trouble.value, [p.partition for p in f.partitions]) for f in found] == [
        ("under-replicated", [0]),
        ("offline", [3]),
        ("under min ISR", [2]),
        ("at min ISR", [1]),
    ]


def test_a_dead_broker_is_the_cause_for_all_its_partitions() -> None:
    """One finding for two partitions; what helps is to start it, or to do without it."""
    both = [standing(1, (1, 2, 3), (1, 2), 1, index=index) for index in (0, 1)]
    (finding,) = findings(both, {1, 2})
    assert finding == Finding(
        Trouble.UNDER_REPLICATED,
        "broker 3 is down",
        "start broker 3 again, or do without it: `ottla broker drain 3`",
        (TopicPartition("t", 0), TopicPartition("t", 1)),
    )
    _, cause, remedy = only(findings([standing(1, (1, 2, 3), (1,), 1)], {1}))
    assert cause.startswith("brokers 2 and 3 are down")
    assert "start brokers 2 and 3 again" in remedy


def test_a_live_replica_out_of_sync_is_to_be_asked_about() -> None:
    """Unless it is on its way, which takes the time it takes."""
    behind = standing(1, (1, 2, 3), (1, 2), 1)
    _, cause, remedy = only(findings([behind], {1, 2, 3}))
    assert cause == "broker 3 is alive and not in sync"
    assert "`ottla why isr t-0`" in remedy
    _, cause, remedy = only(findings([behind], {1, 2, 3}, {behind.name}))
    assert cause == "the partition moves, and broker 3 is copying it"
    assert remedy == "wait: `ottla partition status`"


def test_too_few_in_sync_say_what_is_refused() -> None:
    """Now, or after the next loss."""
    _, cause, _ = only(findings([standing(1, (1, 2), (1,))], {1}))
    assert cause == (
        "broker 2 is down; 1 in sync and min.insync.replicas needs 2, so that acks=all is refused"
    )
    _, cause, _ = only(findings([standing(1, (1, 2, 3), (1, 2))], {1, 2}))
    assert cause.endswith("needs 2: one more that leaves, and acks=all is refused")


def test_an_offline_partition_waits_for_who_has_everything() -> None:
    """The ISR or the eligible; an unclean election is named only where somebody else lives."""
    _, cause, remedy = only(findings([standing(NO_LEADER, (1, 2), (2,))], {1}))
    assert cause == "broker 2 is down, and nobody else has all that was acknowledged"
    assert remedy == (
        "start broker 2; `ottla partition elect --unclean t-0` elects another and may lose records"
    )
    eligible = standing(NO_LEADER, (1, 2), (), elr=(2, 1))
    _, _, remedy = only(findings([eligible], ()))
    assert remedy == "start one of 2 and 1"
    doubtful = standing(NO_LEADER, (1, 2, 3), (), last_known=(1, 2))
    _, cause, remedy = only(findings([doubtful], {1}))
    assert cause == "all who were in sync stopped uncleanly, 1 and 2 last"
    assert remedy.startswith("start broker 2: with all of them back the furthest is elected")
    _, cause, remedy = only(findings([standing(NO_LEADER, (1, 2), (1,))], {1}))
    assert cause == "nobody leads it"
    assert "`ottla why leader t-0`" in remedy


def test_a_cluster_without_controller_is_ill() -> None:
    """Even where all partitions are well."""
    trouble, _, _ = only(findings([], {1}, has_controller=False))
    assert trouble is Trouble.NO_CONTROLLER
