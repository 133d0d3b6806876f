"""The tables of settings by name, and the error for a name that is in none of them."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.tables.broker_cluster import CLUSTER
from ottla.base.settings.tables.broker_foreign import FOREIGN_SETTINGS
from ottla.base.settings.tables.broker_log import LOG
from ottla.base.settings.tables.broker_network import NETWORK
from ottla.base.settings.tables.broker_security import SECURITY_SETTINGS
from ottla.base.settings.tables.groups import GROUP_SETTINGS as _GROUP_ROWS
from ottla.base.settings.tables.groups import GROUPS, SHARE_SETTINGS
from ottla.base.settings.tables.setting import CLUSTER_WIDE, Setting
from ottla.base.settings.tables.topic import OF_BROKER, OWN_SETTINGS


def _by_name(*tables: tuple[Setting, ...]) -> dict[str, Setting]:
    return {setting.name: setting for table in tables for setting in table}


BROKER_SETTINGS = _by_name(
    NETWORK, LOG, GROUPS, SHARE_SETTINGS, CLUSTER, SECURITY_SETTINGS, FOREIGN_SETTINGS
)
_SHARED = {
    name: BROKER_SETTINGS[of_broker]._replace(name=name, update=CLUSTER_WIDE)
    for name, of_broker in OF_BROKER.items()
}
TOPIC_SETTINGS = dict(sorted({**_SHARED, **_by_name(OWN_SETTINGS)}.items()))
GROUP_SETTINGS = _by_name(_GROUP_ROWS)

# The broker setting that gives a group's setting its default, as in `TOPIC_SYNONYMS`.
GROUP_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    name: ((f"group.{name}", 1),) for name in GROUP_SETTINGS if f"group.{name}" in BROKER_SETTINGS
}

# Broker settings that replace each other, finest unit first.
BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    name: names
    for names in (
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    for name in names
    if name != "log.flush.scheduler.interval.ms"
}


# No setting's name is longer; comparing more would only cost time.
_NAME_MAX = 100


def setting_named(table: dict[str, Setting], name: str, kind: str) -> Setting:
    """Return the table row of `name`. Raises OttlaError(INVALID_CONFIG) with the nearest name.

    `kind` is the word the message uses: "broker", "topic" or "group".
    """
    setting = table.get(name)
    if setting is None:
        raise unknown_name(name, table, kind)
    return setting


def unknown_name(name: str, known: Iterable[str], kind: str) -> OttlaError:
    """Return the error for an unknown setting, with the most similar names."""
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
