"""What is wrong with partitions and disks, why, and what helps."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin.logs import LogDirectory
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.view import NO_LEADER
from ottla.diagnosis.health import HealthFinding, Trouble, counts, disk_findings, findings


def standing(
    leader: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    min_isr: int = 2,
    *,
    index: int = 0,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
) -> PartitionStatus:
    name = TopicPartition("t", index)
    return PartitionStatus(name, leader, 4, replicas, isr, min_isr, elr, last_known)


def only(found: list[HealthFinding]) -> tuple[Trouble, str, str]:
    (finding,) = found
    return finding.trouble, finding.cause, finding.remedy


def test_all_is_well() -> None:
    """Nothing is found, and nothing counts."""
    well = [standing(1, (1, 2, 3), (1, 2, 3)), standing(1, (1,), (1,), 1)]
    assert findings(well, {1, 2, 3}) == []
    assert set(counts(well).values()) == {0}


def test_the_numbers_nest_and_each_partition_is_in_one_finding_under_the_worst() -> None:
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
    """One finding for two partitions; what helps is to start it, or another one in its place."""
    both = [standing(1, (1, 2, 3), (1, 2), 1, index=index) for index in (0, 1)]
    (finding,) = findings(both, {1, 2})
    assert finding == HealthFinding(
        Trouble.UNDER_REPLICATED,
        "broker 3 is down",
        "start broker 3 again; to do without it, start another broker first: 2 alive cannot hold "
        "3 replicas",
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


def test_an_offline_partition_waits_for_a_replica_with_all_acknowledged_records() -> None:
    """The ISR or the eligible; an unclean election is named only where another replica is alive."""
    _, cause, remedy = only(findings([standing(NO_LEADER, (1, 2), (2,))], {1}))
    assert cause == "broker 2 is down, and no other broker has all acknowledged records"
    assert remedy == (
        "start broker 2; `ottla partition elect --unclean t-0` elects another replica and may lose "
        "records"
    )
    eligible = standing(NO_LEADER, (1, 2), (), elr=(2, 1))
    _, _, remedy = only(findings([eligible], ()))
    assert remedy == "start one of 2 and 1"
    doubtful = standing(NO_LEADER, (1, 2, 3), (), last_known=(1, 2))
    _, cause, remedy = only(findings([doubtful], {1}))
    assert cause == "every replica that was in sync stopped uncleanly, 1 and 2 last"
    assert remedy.startswith("start broker 2: with all of them back the longest log leads")
    _, cause, remedy = only(findings([standing(NO_LEADER, (1, 2), (1,))], {1}))
    assert cause == "it has no leader"
    assert "`ottla why leader t-0`" in remedy


def test_a_cluster_without_controller_is_ill() -> None:
    """Even where all partitions are well."""
    trouble, _, _ = only(findings([], {1}, has_controller=False))
    assert trouble is Trouble.NO_CONTROLLER


def test_a_drain_is_proposed_only_where_the_live_brokers_can_hold_all_replicas() -> None:
    """With a fourth broker the third can be emptied; with three of three it cannot."""
    lacking = standing(1, (1, 2, 3), (1, 2), 1, index=0)
    _, _, remedy = only(findings([lacking], {1, 2, 4}))
    assert remedy == "start broker 3 again, or do without it: `ottla broker drain 3`"
    _, _, remedy = only(findings([lacking], {1, 2}))
    assert "drain" not in remedy
    # Two replicas would find room, but another partition's three would not.
    narrow = standing(1, (1, 3), (1,), 1, index=1)
    wide = standing(1, (1, 2, 4), (1, 2, 4), 1, index=2)
    assert "drain" not in only(findings([narrow, wide], {1, 2}))[2]


def directory(usable: int, total: int = 100 << 30, error: int = 0) -> LogDirectory:
    return LogDirectory(2, "/data", ErrorCode(error), {}, total, usable)


def test_a_full_disk_is_told_with_what_makes_room() -> None:
    """Produce requests fail there, before the reserve is used; no partition's ISR shows it."""
    trouble, cause, remedy = only(disk_findings([directory(4096)]))
    assert trouble is Trouble.DISK_FULL
    assert cause == (
        "/data of broker 2 has 4.0 KiB left, and 256.0 MiB are reserved for deletions and "
        "restarts: what needs more is refused with KAFKA_STORAGE_ERROR, reads go on"
    )
    assert only(disk_findings([directory(256 << 20)]))[0] is Trouble.DISK_FULL
    assert "file.delete.delay.ms" in remedy
    assert only(disk_findings([directory(900 << 20)]))[0] is Trouble.DISK_ALMOST_FULL
    assert only(disk_findings([directory(0, error=56)]))[0] is Trouble.DIRECTORY_OFFLINE


def test_disks_with_room_and_those_of_old_brokers_are_no_finding() -> None:
    """A small volume may be nearly used; -1 is a broker that does not tell."""
    assert disk_findings([directory(2 << 30), directory(20 << 20, 64 << 20)]) == []
    assert disk_findings([directory(-1, -1)]) == []
