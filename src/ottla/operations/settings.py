"""Changes settings, and what brokers log; returns old and new values, suggests similar names."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType, ConfigSource
from ottla.diagnosis.consequences import notes

# Kafka's brokers answer a change before they apply it themselves.
_LOOKS_MAX = 30
_PAUSE_S = 0.1
# Removes the level of a logger.
RESET = "default"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting before and after a change. None means that the broker does not know it."""

    name: str
    before: ConfigEntry | None
    after: ConfigEntry | None


@dataclass(frozen=True, slots=True)
class SettingChanges:
    """The result of a change of settings.

    `unknown` has a sentence for each name that the broker accepted but Ottla does not know.
    Kafka's brokers store such settings, but do not use them. `notes` describe contradictions
    between a topic's settings after the change.
    """

    changes: tuple[SettingChange, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def change_settings(
    admin: Admin,
    kind: ConfigResourceType,
    name: str,
    changes: Mapping[str, str | None],
    known: Iterable[str],
) -> SettingChanges:
    """Change settings (None: reset to the default), and wait until the brokers show the change.

    Raises OttlaError if the broker refuses a setting; it suggests a similar name of `known`.
    """
    before = await admin.configs.describe(kind, name, changes)
    try:
        await admin.configs.alter(kind, name, changes)
    except OttlaError as error:
        raise naming_nearest(error, changes, known) from None
    for _ in range(_LOOKS_MAX):
        after = await admin.configs.describe(kind, name, changes)
        if all(_is_made(before.get(key), after.get(key), changes[key]) for key in changes):
            break
        await asyncio.sleep(_PAUSE_S)
    return SettingChanges(
        tuple(SettingChange(key, before.get(key), after.get(key)) for key in changes),
        tuple(nearest_names(changes, known)),
        tuple(await _notes(admin, name, changes)) if kind is ConfigResourceType.TOPIC else (),
    )


def naming_nearest(error: OttlaError, names: Iterable[str], known: Iterable[str]) -> OttlaError:
    """Return the error of a change; add similar names from `known` if the broker named none."""
    if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
        return error
    if "did you mean" in error.message:
        return error
    return OttlaError(error.code, "; ".join([error.message, *nearest_names(names, known)]))


def nearest_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return a question that suggests a similar name of `known`, for each unknown name."""
    known = list(known)
    hints: list[str] = []
    for name in names:
        near = [] if name in known else get_close_matches(name, known, n=2, cutoff=0.6)
        if near:
            hints.append(f"{name}: did you mean {' or '.join(near)}?")
    return hints


def _is_made(before: ConfigEntry | None, after: ConfigEntry | None, asked: str | None) -> bool:
    """Whether a change is visible, or changes nothing and so cannot become visible."""
    if before is None or after is None or after.is_sensitive:
        return True
    if (before.value, before.source) != (after.value, after.source):
        return True
    if asked is None:
        return before.source in (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER)
    return before.value == asked


async def _notes(admin: Admin, topic: str, changes: Iterable[str]) -> list[str]:
    (view,) = await admin.topics.describe_all([topic])
    entries = await admin.configs.describe(ConfigResourceType.TOPIC, topic)
    values = {entry.name: entry.value for entry in entries.values()}
    return notes(len(view.partitions[0].replicas), values, set(changes))


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """The level of a broker's logger, by Kafka's name: DEBUG, INFO, WARN, ERROR or FATAL."""

    broker_id: int
    logger: str
    level: str | None


async def log_levels(
    admin: Admin, area: str = "", level: str = "", brokers: Sequence[int] = ()
) -> list[LoggerLevel]:
    """Set the level of an area of the code, if `level` is given; return the levels of the area.

    An area is the beginning of a part of a logger's name, such as `replica` or `network`; ""
    means all loggers. `level` may be "default", for the level of the logger above. `brokers` are
    all live brokers if none is named. Raises INVALID_CONFIG if no logger is in the area.
    """
    ids = list(brokers) or [one.broker_id for one in (await admin.cluster.describe()).brokers]
    found: list[LoggerLevel] = []
    for broker_id in ids:
        names = loggers_in(area, await admin.configs.describe("broker_logger", str(broker_id)))
        if not names:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"no logger of broker {broker_id} has a part that begins with {area!r};"
                " `ottla broker log-level` lists them",
            )
        if level:
            value = None if level == RESET else level.upper()
            changes = dict.fromkeys(_topmost(names), value)
            # Levels of their own below would go on to apply.
            changes |= dict.fromkeys(set(names) - changes.keys())
            await admin.configs.alter("broker_logger", str(broker_id), changes)
        levels = await admin.configs.describe("broker_logger", str(broker_id))
        found += [LoggerLevel(broker_id, name, levels[name].value) for name in names]
    return found


def loggers_in(area: str, names: Iterable[str]) -> list[str]:
    """Return the names that have a part which begins with `area`, sorted."""
    return sorted(name for name in names if any(part.startswith(area) for part in name.split(".")))


def _topmost(names: Sequence[str]) -> list[str]:
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
