"""Formats settings, and their changes."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from ottla.client.admin.configs import ConfigEntry
from ottla.diagnosis.settings import SOURCE_WORDS, set_by_operator
from ottla.operations.settings import SettingChanges

_HIDDEN = "(hidden)"


def setting_row(entry: ConfigEntry) -> dict[str, Any]:
    """Return one setting with its value and its source."""
    return {
        "setting": entry.name,
        "value": _HIDDEN if entry.is_sensitive else entry.value,
        "source": SOURCE_WORDS[entry.source],
        "read_only": entry.is_read_only,
        "synonyms": [
            {"setting": name, "value": value, "source": SOURCE_WORDS[source]}
            for name, value, source in entry.synonyms
        ],
    }


def changed_rows(configs: Mapping[str, ConfigEntry]) -> list[dict[str, Any]]:
    """Return a row for each setting that is not at its default."""
    return [setting_row(entry) for entry in set_by_operator(configs)]


def change_rows(done: SettingChanges) -> list[dict[str, Any]]:
    """Return a row for each changed setting, with its old and new value."""
    return [
        {"setting": change.name, "old": _value(change.before), "new": _value(change.after)}
        for change in done.changes
    ]


def show_remarks(done: SettingChanges) -> None:
    """Print names unknown to Ottla, and contradictions of the new values, to standard error."""
    for hint in done.unknown:
        click.echo(f"the broker took a setting that Ottla does not know: {hint}", err=True)
    show_notes(done.notes)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error, so that programs that read the answer do not get them."""
    for note in notes:
        click.echo(f"Note: {note}", err=True)


def _value(entry: ConfigEntry | None) -> str | None:
    if entry is None:
        return None
    return _HIDDEN if entry.is_sensitive else entry.value
