"""What the doctor finds in settings, clocks and versions, and in which order it says so."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.diagnosis import health
from ottla.diagnosis.findings import (
    Area,
    ClockOffset,
    Finding,
    Severity,
    of_brokers,
    of_clocks,
    of_health,
    of_topics,
    of_versions,
    ordered,
)

TOPIC = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
BROKER = {
    "default.replication.factor": "3",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "2",
    "offsets.retention.minutes": "10080",
    "replica.fetch.max.bytes": "1048576",
    "socket.request.max.bytes": "104857600",
}


def test_errors_come_first_and_causes_before_what_follows() -> None:
    """A broken address explains the partitions; both go before any warning."""
    found = [
        Finding(severity, area, "t", "c", "r")
        for severity, area in (
            (Severity.NOTE, Area.ADDRESSES),
            (Severity.WARNING, Area.CLUSTER),
            (Severity.ERROR, Area.PARTITIONS),
            (Severity.ERROR, Area.ADDRESSES),
        )
    ]
    assert [(one.severity.value, one.area.value) for one in ordered(found)] == [
        ("error", "addresses"),
        ("error", "partitions"),
        ("warning", "cluster"),
        ("note", "addresses"),
    ]


@pytest.mark.parametrize(
    ("trouble", "severity", "area"),
    [
        (health.Trouble.OFFLINE, Severity.ERROR, Area.PARTITIONS),
        (health.Trouble.UNDER_REPLICATED, Severity.WARNING, Area.PARTITIONS),
        (health.Trouble.DISK_FULL, Severity.ERROR, Area.DISKS),
        (health.Trouble.DISK_ALMOST_FULL, Severity.WARNING, Area.DISKS),
        (health.Trouble.NO_CONTROLLER, Severity.ERROR, Area.CLUSTER),
    ],
)
def test_troubles_of_the_health_keep_cause_and_remedy(
    trouble: health.Trouble, severity: Severity, area: Area
) -> None:
    """What refuses requests now is an error, what only might is a warning."""
    (found,) = of_health([health.HealthFinding(trouble, "why", "do", (TopicPartition("t", 1),))])
    assert (found.severity, found.area) == (severity, area)
    assert (found.cause, found.remedy, found.where) == ("why", "do", ("t-1",))


def test_clocks_within_what_can_be_measured_are_alike() -> None:
    """A slow answer makes the offset uncertain, and uncertainty is no finding."""
    assert of_clocks({1: ClockOffset(0, 1), 2: ClockOffset(900, 1), 3: ClockOffset(-900, 1)}) == []
    assert of_clocks({1: ClockOffset(0, 1), 2: ClockOffset(0, 1), 3: ClockOffset(5000, 4000)}) == []
    assert of_clocks({}) == []


def test_the_odd_clock_is_named_and_not_the_others() -> None:
    """Of three brokers one is an hour ahead."""
    (found,) = of_clocks({1: ClockOffset(3, 1), 2: ClockOffset(3_600_003, 1), 3: ClockOffset(3, 1)})
    assert found.severity is Severity.ERROR
    assert found.cause.startswith("the clock of broker 2 is 1 hour ahead of the other brokers'")


def test_a_machine_that_differs_from_all_brokers_is_itself_the_odd_one() -> None:
    """All brokers agree, and are five seconds ahead of here."""
    (found,) = of_clocks({1: ClockOffset(5000, 1), 2: ClockOffset(5000, 1)})
    assert found.severity is Severity.WARNING
    assert found.cause.startswith("the clock of this machine is 5 seconds behind the brokers'")


def test_brokers_that_serve_other_versions_are_named_with_an_example() -> None:
    """An upgrade that stopped half way; the same versions are no finding."""
    assert of_versions({1: {1: (0, 18)}, 2: {1: (0, 18)}}, {1: (), 2: ()}) == []
    (found,) = of_versions({1: {1: (0, 18), 3: (0, 13)}, 2: {1: (0, 17), 3: (0, 13)}}, {})
    assert found.severity is Severity.WARNING
    assert "1 APIs; FETCH: broker 1 0 to 18, broker 2 0 to 17" in found.cause


def test_an_api_that_the_client_does_not_share_is_an_error() -> None:
    """A client that is too new for a broker can do nothing with it."""
    (found,) = of_versions({1: {}}, {1: (0, 1)})
    assert (found.severity, found.where) == (Severity.ERROR, ("broker 1",))
    assert found.cause == "they share no version of PRODUCE, FETCH"


def causes(found: list[Finding]) -> list[tuple[Severity, str]]:
    return [(one.severity, one.cause.split(":")[0]) for one in found]


def test_good_settings_are_no_finding() -> None:
    """Three replicas of which two must be in sync, and the defaults."""
    assert of_brokers({1: BROKER, 2: BROKER}) == []
    assert of_topics({"t": (3, TOPIC)}, BROKER, 3) == []
    assert of_topics({"t": (3, {})}, {}, 3) == []


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        (
            {"min.insync.replicas": "4"},
            "min.insync.replicas=4 is above default.replication.factor=3",
        ),
        (
            {"message.max.bytes": "104857600"},
            "message.max.bytes=104857600 is not below socket.request.max.bytes=104857600",
        ),
        (
            {"replica.fetch.wait.max.ms": "500", "replica.lag.time.max.ms": "400"},
            "replica.fetch.wait.max.ms=500 is not below replica.lag.time.max.ms=400",
        ),
        (
            {
                "group.consumer.heartbeat.interval.ms": "50000",
                "group.consumer.session.timeout.ms": "45000",
            },
            "group.consumer.heartbeat.interval.ms=50000 is not below"
            " group.consumer.session.timeout.ms=45000",
        ),
    ],
)
def test_settings_of_a_broker_that_contradict_each_other(
    changed: dict[str, str], cause: str
) -> None:
    """Each is a warning; brokers that have it alike are one finding."""
    config = {**BROKER, **changed}
    (found,) = of_brokers({1: config, 2: config})
    assert causes([found]) == [(Severity.WARNING, cause)]
    assert found.where == ("broker 1", "broker 2")


def test_brokers_with_different_settings_are_named_with_their_values() -> None:
    """It depends on the broker what a client gets."""
    (found,) = of_brokers({1: BROKER, 2: {**BROKER, "min.insync.replicas": "1"}})
    assert found.cause == "min.insync.replicas differs between brokers: broker 1 2, broker 2 1"


@pytest.mark.parametrize(
    ("replicas", "changed", "severity", "cause"),
    [
        (
            3,
            {"min.insync.replicas": "4"},
            Severity.WARNING,
            "min.insync.replicas=4 is above the replication factor 3",
        ),
        (
            3,
            {"min.insync.replicas": "3"},
            Severity.WARNING,
            "min.insync.replicas=3 is the replication factor",
        ),
        (
            3,
            {"unclean.leader.election.enable": "true"},
            Severity.WARNING,
            "unclean.leader.election.enable=true takes back what acks=all with"
            " min.insync.replicas=2 promises",
        ),
        (
            3,
            {"retention.ms": "60000"},
            Severity.WARNING,
            "segment.ms=604800000 is above retention.ms=60000",
        ),
        (
            3,
            {"max.message.bytes": "104857600"},
            Severity.WARNING,
            "max.message.bytes=104857600 is not below the brokers'"
            " socket.request.max.bytes=104857600",
        ),
        (
            3,
            {"max.message.bytes": "2097152"},
            Severity.NOTE,
            "max.message.bytes is 2.0 MiB and the brokers' replica.fetch.max.bytes 1.0 MiB",
        ),
        (
            3,
            {"retention.ms": "-1"},
            Severity.NOTE,
            "records are kept for ever, the offsets of a group that stopped only for 7 days"
            " (offsets.retention.minutes)",
        ),
        (
            1,
            {"min.insync.replicas": "1"},
            Severity.NOTE,
            "one replica, though there are 3 brokers",
        ),
    ],
)
def test_settings_of_a_topic_that_contradict_each_other_or_the_brokers(
    replicas: int, changed: dict[str, str], severity: Severity, cause: str
) -> None:
    """Topics with the same contradiction are one finding."""
    topic = (replicas, {**TOPIC, **changed})
    found = of_topics({"a": topic, "b": topic}, BROKER, 3)
    assert (severity, cause) in causes(found)
    assert all(one.where == ("a", "b") for one in found)
