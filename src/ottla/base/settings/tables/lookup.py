"""The tables of settings by name, and the error for a name that is in none of them."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.declaration.setting import Setting, Use
from ottla.base.settings.tables.broker_cluster import CLUSTER
from ottla.base.settings.tables.broker_foreign import FOREIGN_SETTINGS
from ottla.base.settings.tables.broker_groups import GROUPS
from ottla.base.settings.tables.broker_log import LOG
from ottla.base.settings.tables.broker_network import NETWORK
from ottla.base.settings.tables.broker_security import SECURITY_SETTINGS
from ottla.base.settings.tables.broker_share import SHARE_SETTINGS
from ottla.base.settings.tables.group import GROUP_SETTINGS as _GROUP_ROWS
from ottla.base.settings.tables.topic import TOPIC_SETTINGS as _TOPIC_ROWS

# Kafka's settings of parts that Ottla does not have, or has no use for: accepted, and so marked. A
# setting whose part comes into being is taken out of here; a test holds the list to the code.
# Everything whose name begins so belongs to one such part.
UNREAD_PREFIXES = ("metrics.",)
UNREAD_NAMES = frozenset(
    {
        "add.partitions.to.txn.retry.backoff.ms",
        "background.threads",
        "broker.heartbeat.interval.ms",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "fetch.purgatory.purge.interval.requests",
        "group.consumer.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.coordinator.append.linger.ms",
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "group.coordinator.rebalance.protocols",
        "group.coordinator.threads",
        "log.cleaner.io.buffer.size",
        "log.dir.failure.timeout.ms",
        "log.initial.task.delay.ms",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "offsets.topic.compression.codec",
        "producer.purgatory.purge.interval.requests",
        "queued.max.requests",
        "replica.socket.receive.buffer.bytes",
        "request.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "transaction.two.phase.commit.enable",
    }
)


def _by_name(*tables: tuple[Setting, ...]) -> dict[str, Setting]:
    return {setting.name: setting for table in tables for setting in table}


def _marked(setting: Setting) -> Setting:
    """The row; marked as without effect if no part reads the setting."""
    is_unread = setting.name in UNREAD_NAMES or setting.name.startswith(UNREAD_PREFIXES)
    if setting.use is Use.USED and is_unread:
        return setting._replace(use=Use.UNUSED)
    return setting


BROKER_SETTINGS = {
    name: _marked(setting)
    for name, setting in _by_name(
        NETWORK, LOG, GROUPS, SHARE_SETTINGS, CLUSTER, SECURITY_SETTINGS, FOREIGN_SETTINGS
    ).items()
}
TOPIC_SETTINGS = _by_name(_TOPIC_ROWS)
GROUP_SETTINGS = _by_name(_GROUP_ROWS)


# No setting's name is longer; comparing more would only cost time.
_NAME_MAX = 100


def setting_named(table: dict[str, Setting], name: str, kind: str) -> Setting:
    """The row of `name`. Raises OttlaError(INVALID_CONFIG) that proposes the nearest name.

    `kind` is the word the message uses: "broker", "topic" or "group".
    """
    setting = table.get(name)
    if setting is None:
        raise unknown_name(name, table, kind)
    return setting


def unknown_name(name: str, known: Iterable[str], kind: str) -> OttlaError:
    """The error for an unknown setting, with the most similar names."""
    # Imported only on a mistake, because it would double the layer's import time.
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(name[:_NAME_MAX], sorted(known), n=3, cutoff=0.6)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"see the {kind} settings in the documentation"
    return OttlaError(
        ErrorCode.INVALID_CONFIG, f"Unknown {kind} config name: {shortened(name)}; {hint}"
    )
