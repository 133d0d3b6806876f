"""`ottla topic users` and `ottla topic unused`: which clients use a topic, and which none does."""

import time
from dataclasses import asdict

import click

from ottla.base.quantities import counted, iso, size_words, span_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one, show_silent, show_title
from ottla.cli.text.words import span
from ottla.client.admin import Admin
from ottla.client.admin.clients import ClientUsage
from ottla.diagnosis.clients import unused_topics, users_of

_COLUMNS = ["direction", "client_id", "principal", "library", "bytes", "last_seen", "broker"]


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=topics)
@connected
@options.output
async def users(admin: Admin, name: str, form: str) -> None:
    """Show which clients produce to TOPIC and fetch from it.

    \b
    ottla topic users orders
    ottla topic users orders -o json

    The brokers count this for each client id, principal and library, over restarts. Replicas that
    copy the topic are not counted. A last use is known to about ten seconds.
    """  # noqa: D301
    found = await users_of(admin, name)
    since_ms = found.since_ms.get(name)
    since = None if since_ms is None else iso(since_ms)
    if form == "json":
        rows = [
            {**asdict(one), "first_seen": iso(one.first_ms), "last_seen": iso(one.last_ms)}
            for one in found.uses
        ]
        show_one("json", {"topic": name, "complete_since": since, "users": rows, **_doubts(found)})
        return
    _show_doubts(found)
    show_title(f"{name}  every use is known since {since or 'just now'}")
    show(
        "table",
        [
            {
                "direction": one.direction,
                "client_id": one.client_id or "(none)",
                "principal": one.principal,
                "library": one.library or "(unnamed)",
                "bytes": size_words(one.size_bytes),
                "last_seen": iso(one.last_ms),
                "broker": one.broker_id,
            }
            for one in found.uses
        ],
        _COLUMNS,
        empty="no client has used it",
    )


@click.command()
@click.option(
    "--for",
    "for_ms",
    type=span,
    default="30d",
    help="Only topics without a use for so long: 30d unless said.",
)
@connected
@options.output
async def unused(admin: Admin, for_ms: int, form: str) -> None:
    """List the topics that no client has used for a time.

    \b
    ottla topic unused --for 30d
    ottla topic unused --for 12h -o json

    To use a topic is to produce to it or to fetch from it. A topic is listed only if all brokers
    have watched it for so long.
    """  # noqa: D301
    found = await unused_topics(admin, for_ms, round(time.time() * 1000))
    rows = [
        {
            "topic": one.topic,
            "last_use": None if one.last_ms is None else iso(one.last_ms),
            "watched_since": iso(one.since_ms),
        }
        for one in found.unused
    ]
    if form == "json":
        more = {"not_known": list(found.not_known), **_doubts(found.usage)}
        show_one("json", {"unused": rows, **more})
        return
    _show_doubts(found.usage)
    span_text = span_words(for_ms)
    show(
        "table",
        rows,
        ["topic", "last_use", "watched_since"],
        empty="no topic is known to be unused",
    )
    if found.not_known:
        click.echo(
            f"{counted(len(found.not_known), 'topic')} had no use so far, but not all brokers have "
            f"watched for {span_text}: {', '.join(found.not_known)}",
        )


def _doubts(found: ClientUsage) -> dict[str, object]:
    return {
        "unknown_minute_before": {str(key): iso(at_ms) for key, at_ms in found.gaps_ms.items()},
        "silent": {str(key): error.message for key, error in found.silent.items()},
    }


def _show_doubts(found: ClientUsage) -> None:
    show_silent(found.silent)
    for broker_id, at_ms in found.gaps_ms.items():
        click.echo(
            f"broker {broker_id} had not stopped cleanly before its start at {iso(at_ms)}: uses of "
            "the minute before its crash may be missing",
            err=True,
        )
