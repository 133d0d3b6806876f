"""Changes settings and returns old and new values; suggests similar names for unknown ones."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType, ConfigSource
from ottla.diagnosis.consequences import notes

# Kafka's brokers answer a change before they apply it themselves.
_LOOKS_MAX = 30
_PAUSE_S = 0.1


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
