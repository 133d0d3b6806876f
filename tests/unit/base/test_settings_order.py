"""Settings that contradict each other."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.check import (
    check_changed_topic,
    check_group_configs,
    check_new_topic,
    oddities,
)

VALUES = {
    "min.insync.replicas": 1,
    "cleanup.policy": ("delete",),
    "retention.bytes": -1,
    "retention.ms": 604_800_000,
    "segment.bytes": 1 << 30,
    "segment.ms": 604_800_000,
}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"min.insync.replicas": 3}, [("min.insync.replicas",)]),
        ({"retention.bytes": (1 << 30) - 1}, [("segment.bytes", "retention.bytes")]),
        ({"retention.ms": 1}, [("segment.ms", "retention.ms")]),
        ({"retention.ms": 1, "cleanup.policy": ("compact",)}, []),
        (
            {"retention.ms": 1, "cleanup.policy": ("compact", "delete")},
            [("segment.ms", "retention.ms")],
        ),
        ({"retention.ms": -1}, []),
    ],
)
def test_what_is_odd(changes, names):
    """Two replicas; segments count only where retention deletes them."""
    assert [oddity.names for oddity in oddities({**VALUES, **changes}, 2)] == names


def refused(check, *arguments):
    with pytest.raises(OttlaError) as caught:
        check(*arguments)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_defaults_of_the_broker_are_not_held_against_a_new_topic():
    """Only what stands in the request."""
    broker = BrokerSettings({"min.insync.replicas": "2", "log.retention.bytes": "1000"})
    check_new_topic({}, 1, broker)
    check_new_topic({"segment.bytes": "2000000"}, 1, broker)
    assert "min.insync.replicas=2" in refused(
        check_new_topic, {"min.insync.replicas": "2"}, 1, broker
    )


def test_a_change_is_refused_only_for_what_it_sets():
    """A topic that lost replicas can still have its retention changed; all oddities are told."""
    before = {"min.insync.replicas": "2"}
    broker = BrokerSettings()
    after = {**before, "retention.ms": "1000"}
    found = check_changed_topic(before, after, 1, broker)
    assert [oddity.names for oddity in found] == [
        ("min.insync.replicas",),
        ("segment.ms", "retention.ms"),
    ]
    refused(check_changed_topic, {}, before, 1, broker)


@pytest.mark.parametrize(
    "settings",
    [
        {"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "9"},
        {"group.consumer.session.timeout.ms": "44999"},
        {"group.consumer.session.timeout.ms": "60001"},
        {"group.consumer.max.session.timeout.ms": "44999"},
        {"group.consumer.heartbeat.interval.ms": "15001"},
        {
            "group.consumer.heartbeat.interval.ms": "5000",
            "group.consumer.session.timeout.ms": "5000",
            "group.consumer.min.session.timeout.ms": "1",
        },
        {
            "log.cleaner.min.compaction.lag.ms": "2",
            "log.cleaner.max.compaction.lag.ms": "1",
        },
        {"group.share.max.size": "11", "group.share.max.share.sessions": "10"},
        {"log.cleaner.threads": "128"},
        {"log.cleaner.dedupe.buffer.size": "1048576"},
        {"queued.max.request.bytes": "1000"},
        {"max.connections.per.ip": "0"},
        {"cordoned.log.dirs": "/elsewhere", "log.dirs": "/here"},
    ],
)
def test_a_broker_does_not_start_with_settings_in_the_wrong_order(settings):
    """The message names both."""
    name, *_ = settings
    assert name in refused(BrokerSettings, settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"log.cleaner.threads": "0"},
        {"log.cleaner.threads": "127"},
        {"queued.max.request.bytes": "0"},
        {"queued.max.request.bytes": "1000", "socket.request.max.bytes": "1000"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
        {"cordoned.log.dirs": "/here", "log.dirs": "/here,/there"},
        {"cordoned.log.dirs": "*"},
        {"connections.max.idle.ms": "-1"},
        {"log.retention.ms": "-1"},
    ],
)
def test_what_fits_together_is_taken(settings):
    """No limit, no thread (which Kafka divides by), a limit with exceptions."""
    BrokerSettings(settings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.retention.ms", "0"),
        ("log.retention.minutes", "0"),
        ("log.retention.hours", "0"),
        ("log.roll.ms", "0"),
        ("log.roll.jitter.ms", "-1"),
        ("connections.max.idle.ms", "100"),
        ("listeners", "PLAINTEXT:9092"),
        ("listeners", "PLAINTEXT://:70000"),
        ("listener.security.protocol.map", "PLAINTEXT"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAIN"),
        ("offsets.topic.compression.codec", "5"),
        ("group.share.assignors", "other"),
        ("log.dirs", ""),
        ("log.dirs", " , "),
        ("log.dir", ""),
    ],
)
def test_what_kafka_refuses_is_refused(name, text):
    """Each was asked of Kafka 4.3.1."""
    assert name in refused(BrokerSettings, {name: text})


@pytest.mark.parametrize("prefix", ["", "listener.name.internal."])
@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
def test_a_limit_of_no_connection_is_refused(prefix, name):
    """Kafka refuses it while running and starts with it; nothing could connect to such a broker."""
    assert f"Invalid {prefix}{name} 0: " in refused(BrokerSettings, {prefix + name: "0"})
    BrokerSettings({prefix + name: "1"})


def test_a_group_must_be_heard_of_before_it_is_taken_for_dead():
    """Whichever of the two is the broker's."""
    broker = BrokerSettings(
        {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "1",
        }
    )
    check_group_configs({"consumer.session.timeout.ms": "5001"}, broker)
    assert "consumer.heartbeat.interval.ms = 5000" in refused(
        check_group_configs, {"consumer.session.timeout.ms": "5000"}, broker
    )
    both = {"consumer.session.timeout.ms": "2000", "consumer.heartbeat.interval.ms": "1999"}
    check_group_configs(both, broker)
