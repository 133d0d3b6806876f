"""What `ottla config explain` calls used is used: somebody reads it."""

from pathlib import Path

import ottla
from ottla.base.settings import BROKER_SETTINGS
from ottla.base.settings.tables import GROUP_SETTINGS, TOPIC_SYNONYMS
from ottla.base.settings.tables.setting import Use

_SOURCE = Path(ottla.__file__).parent
_TABLES = _SOURCE / "base" / "settings"
# Read by a name that is put together from that of a topic, or of a group's setting.
_BUILT_NAMES = {
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "offsets.topic.replication.factor",
    "offsets.topic.segment.bytes",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.segment.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.segment.bytes",
    # After a prefix, in `broker.login.bearer`.
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    # After a prefix, in `broker.process.store_access`.
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.endpoint.identification.algorithm",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
}


def test_every_used_setting_is_named_where_it_is_read() -> None:
    readers = [
        path
        for path in _SOURCE.rglob("*.py")
        if _TABLES not in path.parents or path.stem in ("listeners", "broker")
    ]
    text = "".join(path.read_text() for path in readers)
    # The bounds of a group's settings are read by names put together from theirs.
    bounds = {
        f"group.{kind}.{bound}.{rest}"
        for kind, _, rest in (name.partition(".") for name in GROUP_SETTINGS)
        for bound in ("min", "max")
    }
    # A topic's setting is read with those that give it its default.
    defaults = {name for row in TOPIC_SYNONYMS.values() for name, _ in row}
    used = {name for name, setting in BROKER_SETTINGS.items() if setting.use is Use.USED}

    assert {name for name in used - _BUILT_NAMES - bounds - defaults if name not in text} == set()
