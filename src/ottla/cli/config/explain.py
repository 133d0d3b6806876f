"""`ottla config explain`: the effect of a setting, from Ottla's own tables, without a broker."""

from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.text.output import show, show_one
from ottla.diagnosis.explanations import Explanation, explanations, settings_with


@click.command()
@click.argument("setting", default="")
@options.output
def explain(setting: str, form: str) -> None:
    """Explain SETTING, a setting of topics, brokers or groups. Needs no broker.

    \b
    ottla config explain retention.ms
    ottla config explain log.flush.policy
    ottla config explain                           every setting there is

    A part of a name lists the settings that have it, such as `ottla config explain retention`.
    """  # noqa: D301
    found = explanations(setting)
    if not found:
        _list_alike(setting, form)
        return
    if form == "json":
        show("json", [_row(one, one.default) for one in found], [])
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        row = _row(one, one.default_words)
        show_one(form, {name: value for name, value in row.items() if value not in ("", [])})


def _list_alike(part: str, form: str) -> None:
    rows = [{"setting": one.name, "kind": one.kind, "doc": one.doc} for one in settings_with(part)]
    show(form, rows, ["setting", "kind", "doc"])


def _row(one: Explanation, default: str | None) -> dict[str, Any]:
    return {
        "setting": one.name,
        "kind": one.kind,
        "doc": one.doc,
        "type": one.type,
        "default": default,
        "rule": one.rule,
        "change": one.change,
        "synonyms": list(one.synonyms),
        "differs": one.differs,
        "use": one.use,
    }
