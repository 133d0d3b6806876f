"""What the store holds and is refused today has no effect."""

import pytest

from ottla.base.settings import BrokerSettings
from ottla.base.settings.check import usable


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max.connections", "0"),
        ("max.connection.creation.rate", "0"),
        ("max.connections.per.ip", "0"),
        ("log.retention.ms", "0"),
        ("log.retention.ms", "x"),
        ("num.partitions", "2"),
        ("listeners", "PLAINTEXT://:1"),
        ("log.cleaner.threads", "128"),
        ("log.cleaner.min.compaction.lag.ms", str(2**63 - 1)),
        ("no.such.setting", "1"),
    ],
)
def test_a_value_that_is_refused_today_is_ignored(name, text):
    """What stands beside it counts; the sentence names setting, value and remedy."""
    static = BrokerSettings({"log.cleaner.max.compaction.lag.ms": "100"})
    found = usable("1", static, {name: text, "log.segment.bytes": "2000000"}, {})
    assert (found.default, found.broker) == ({"log.segment.bytes": "2000000"}, {})
    (ignored,) = found.ignored
    assert ignored[:3] == ("", name, text)
    shown = "(hidden)" if name == "no.such.setting" else text
    assert ignored.sentence.startswith(f"{name}={shown}, stored for all brokers, is ignored: ")
    assert ignored.sentence.endswith(f"with: ottla config set broker all --unset {name}")


def test_a_broker_goes_by_the_value_of_all_brokers_where_its_own_is_ignored():
    """The remedy names the broker; `min.insync.replicas` is no setting of one broker."""
    default = {"max.connections": "7", "min.insync.replicas": "2"}
    own = {"max.connections": "0", "min.insync.replicas": "1"}
    found = usable("3", BrokerSettings(), default, own)
    assert (found.default, found.broker) == (default, {})
    assert [each.sentence for each in found.ignored] == [
        "min.insync.replicas=1, stored for broker 3, is ignored: it is one number of the cluster; "
        "remove it with: ottla config set broker 3 --unset min.insync.replicas",
        "max.connections=0, stored for broker 3, is ignored: Invalid max.connections 0: every new "
        "connection would be closed, those of brokers and of tools that change settings, too; set "
        "at least 1; remove it with: ottla config set broker 3 --unset max.connections",
    ]


def test_values_that_fit_together_are_all_kept():
    """In whichever order: each is looked at beside the others."""
    default = {
        "log.cleaner.threads": "128",
        "log.cleaner.dedupe.buffer.size": "1000000000",
        "cordoned.log.dirs": "/of/another/broker",
        "max.connections.per.ip": "0",
    }
    own = {
        "max.connections.per.ip.overrides": "127.0.0.1:1",
        "cordoned.log.dirs": "/of/another/broker",
    }
    found = usable("1", BrokerSettings(), {**default}, own)
    assert found.broker == own
    # A folder of one broker is never set for all.
    assert found.default == {k: v for k, v in default.items() if k != "cordoned.log.dirs"}
