"""`ottla whatif`: what a change of a cluster would do."""

from collections import Counter

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import few
from ottla.client.admin import Admin
from ottla.diagnosis.whatif import (
    MIN_ISR,
    Prediction,
    add_brokers,
    change_min_isr,
    copied,
    lose_rack,
    stop,
)
from ottla.metadata.image import NO_LEADER


@click.group()
def whatif() -> None:
    """Predict what a change would do, by the controller's own rules; nothing is changed."""


@whatif.command(name="stop-broker")
@click.argument("broker_id", metavar="ID", type=int)
@connected
@options.output
async def stop_broker(admin: Admin, broker_id: int, form: str) -> None:
    """Predict a controlled stop of a broker.

    \b
    ottla whatif stop-broker 2
    """  # noqa: D301
    _show_prediction(form, stop(await copied(admin), broker_id))


@whatif.command(name="lose-rack")
@click.argument("rack")
@connected
@options.output
async def lose_a_rack(admin: Admin, rack: str, form: str) -> None:
    """Predict the death of all brokers of a rack at once.

    \b
    ottla whatif lose-rack a
    """  # noqa: D301
    _show_prediction(form, lose_rack(await copied(admin), rack))


@whatif.command(name="set")
@click.argument("assignment", metavar="min.insync.replicas=N")
@click.option("--topic", "topics", multiple=True, help="Only of this one. May be given again.")
@connected
@options.output
async def set_value(admin: Admin, assignment: str, topics: tuple[str, ...], form: str) -> None:
    """Predict another min.insync.replicas, of topics or all.

    \b
    ottla whatif set min.insync.replicas=3
    ottla whatif set min.insync.replicas=3 --topic orders
    """  # noqa: D301
    name, _, value = assignment.partition("=")
    if name != MIN_ISR or not value.isdecimal() or int(value) < 1:
        raise click.UsageError(f"only {MIN_ISR}=N can be predicted, with N of 1 or more")
    _show_prediction(form, change_min_isr(await copied(admin), int(value), topics or None))


@whatif.command(name="add-brokers")
@click.argument("count", type=click.IntRange(1, 1000))
@connected
@options.output
async def add_some_brokers(admin: Admin, count: int, form: str) -> None:
    """Predict what a balance would move to new brokers.

    \b
    ottla whatif add-brokers 3
    """  # noqa: D301
    grown = add_brokers(await copied(admin), count)
    rows = [
        {
            "broker": broker,
            "replicas": before,
            "replicas_after": after,
            "first_replica_of": grown.leads[broker][0],
            "first_replica_of_after": grown.leads[broker][1],
        }
        for broker, (before, after) in grown.replicas.items()
    ]
    if form == "json":
        moves = {str(name): list(replicas) for name, replicas in grown.moves.items()}
        copied_bytes = grown.copied_bytes
        show_one("json", {"copied_bytes": copied_bytes, "moves": moves, "brokers": rows})
        return
    show(form, rows, list(rows[0]))
    click.echo(
        f"{counted(len(grown.moves), 'partition')} would move, {size_words(grown.copied_bytes)} be"
        " copied. New topics use new brokers at once; the others stay where they are until"
        " `ottla cluster balance --apply`."
    )


def _show_prediction(form: str, found: Prediction) -> None:
    lists = {
        "offline": found.offline,
        "read_only": found.read_only,
        "one_copy": found.one_copy,
        "lossy": found.lossy,
        "groups_stop": found.groups_stop,
        "groups_move": found.groups_move,
    }
    if form == "json":
        leaders = [
            {"partition": str(one.name), "before": one.before, "after": one.after}
            for one in found.leaders
        ]
        answer = {name: list(map(str, names)) for name, names in lists.items()}
        next_stops = [{"broker": broker, "stops": count} for broker, count in found.next.items()]
        show_one("json", {**answer, "leaders": leaders, "next": next_stops})
        return
    for name, sentence in _CONSEQUENCES.items():
        if lists[name]:
            colour = "yellow" if name in ("one_copy", "groups_move") else "red"
            click.secho(f"{sentence} ({len(lists[name]):,})", fg=colour, bold=True)
            click.echo(f"  where {few(lists[name])}")
    for (before, after), count in sorted(
        Counter((one.before, one.after) for one in found.leaders if one.after != NO_LEADER).items()
    ):
        now = f"instead of broker {before}" if before != NO_LEADER else "that had no leader"
        click.echo(f"broker {after} leads {counted(count, 'partition')} {now}")
    if not any(lists.values()) and not found.leaders:
        click.secho("nothing becomes offline or read-only, and no leader moves", fg="green")
    for broker, count in found.next.items():
        if count:
            words = counted(count, "partition")
            click.echo(f"if broker {broker} stops after that, {words} can no longer be written")


_CONSEQUENCES = {
    "offline": "offline: neither read nor written",
    "lossy": "led by a replica that may lack acknowledged records",
    "read_only": "read only: acks=all is refused",
    "one_copy": "one in-sync copy left",
    "groups_stop": "groups without a coordinator",
    "groups_move": "groups whose coordinator moves, which takes them a moment",
}
