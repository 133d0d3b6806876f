"""The settings of a topic: each with its value, why it has it, and a form that changes it."""

from collections.abc import Iterable
from dataclasses import dataclass

from starlette.responses import Response

from ottla.base.errors import OttlaError
from ottla.base.settings import TOPIC_SETTINGS
from ottla.client import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType, ConfigSource
from ottla.console.visit import Visit, address, get, part, post, problem_of
from ottla.diagnosis.settings import Explanation, explanations, set_by_operator, value_words
from ottla.operations.settings import SettingChange, change_settings

_ORIGINS = {
    ConfigSource.TOPIC: "set for this topic",
    ConfigSource.DYNAMIC_BROKER: "set for a broker while it runs",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "set for all brokers while they run",
    ConfigSource.STATIC_BROKER: "in the broker's file of settings",
    ConfigSource.DEFAULT: "the default",
    ConfigSource.GROUP: "set for this group",
}
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A value that is set somewhere for a setting, and where."""

    name: str
    value: str
    place: str


@dataclass(frozen=True, slots=True)
class ExplainedSetting:
    """A setting with its value and the reason for it.

    `words` has a long number in larger units. `origins` has every value set for it, the effective
    one first. `explanation` is Ottla's, None for a setting that Ottla does not have; then
    `documentation` has the broker's own.
    """

    name: str
    value: str
    words: str
    place: str
    is_read_only: bool
    is_changed: bool
    is_own: bool
    origins: tuple[SettingOrigin, ...]
    explanation: Explanation | None
    documentation: str


async def explained_settings(admin: Admin, topic: str) -> tuple[ExplainedSetting, ...]:
    """Return the settings of a topic, those that are not at their defaults first."""
    await admin.topics.describe(topic)  # Raises UnknownTopic, which names similar topics.
    entries = await admin.configs.describe(ConfigResourceType.TOPIC, topic, documentation=True)
    changed = {entry.name for entry in set_by_operator(entries)}
    found = [_explained(entry, changed) for entry in entries.values()]
    return tuple(sorted(found, key=lambda one: (not one.is_changed, one.name)))


def _explained(entry: ConfigEntry, changed: Iterable[str]) -> ExplainedSetting:
    own = [one for one in explanations(entry.name) if one.kind == "topic"]
    return ExplainedSetting(
        entry.name,
        _shown(entry.value, is_sensitive=entry.is_sensitive),
        value_words(entry.name, int(entry.value))
        if entry.value and entry.value.isdecimal()
        else "",
        _place(entry.source),
        entry.is_read_only,
        entry.name in changed,
        entry.source is ConfigSource.TOPIC,
        tuple(
            SettingOrigin(name, _shown(value, is_sensitive=entry.is_sensitive), _place(source))
            for name, value, source in entry.synonyms
        ),
        own[0] if own else None,
        entry.documentation or "",
    )


def _words(entry: ConfigEntry) -> str:
    is_number = entry.value is not None and entry.value.isdecimal()
    return value_words(entry.name, int(entry.value or 0)) if is_number else ""


def _place(source: ConfigSource) -> str:
    return _ORIGINS.get(source, "unknown to this console")


def _shown(value: str | None, *, is_sensitive: bool) -> str:
    if is_sensitive:
        return HIDDEN
    return "(none)" if value is None else value or "(empty)"


async def show_settings(visit: Visit) -> Response:
    """Show the settings of a topic."""
    name = visit.name()
    found = await part(explained_settings(visit.admin, name))
    opened = visit.query("setting")
    return visit.page("settings.html", name=name, settings=found, opened=opened, problem=None)


async def change(visit: Visit) -> Response:
    """Set a setting, or reset it to its default; show the page again with the result."""
    name, setting = visit.name(), visit.field("setting")
    value = None if visit.field("action") == "reset" else visit.field("value")
    try:
        done = await change_settings(
            visit.admin, ConfigResourceType.TOPIC, name, {setting: value}, TOPIC_SETTINGS
        )
    except OttlaError as error:
        found = await part(explained_settings(visit.admin, name))
        problem = problem_of(error)
        return visit.page(
            "settings.html",
            status=problem.status,
            name=name,
            settings=found,
            opened=setting,
            problem=problem,
        )
    sentences = [_sentence(one) for one in done.changes]
    place = address("/topics/{}/settings", name, setting=setting)
    return visit.go(place, *sentences, *done.unknown, *done.notes)


def _sentence(change: SettingChange) -> str:
    before, after = (
        "(unknown)" if one is None else _shown(one.value, is_sensitive=one.is_sensitive)
        for one in (change.before, change.after)
    )
    if before == after:
        return f"{change.name} is {after}, as before."
    return f"{change.name} was {before} and is {after} now."


ROUTES = (
    get("/topics/{name}/settings", show_settings),
    post("/topics/{name}/settings", change),
)
