"""`ottla why rebalance`: the causes and costs of a group's rebalances."""

from typing import Any

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.completion import groups
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.diagnosis.rebalances import first_cause, rebalances_of
from ottla.wire.messages.describe_rebalances import DescribedRebalance, RebalanceCause

_COLUMNS = ["began", "epoch", "ending", "took_ms", "members", "moved", "stopped", "cause"]


@click.command()
@click.argument("group_id", metavar="GROUP", shell_complete=groups)
@click.option("--all", "is_all", is_flag=True, help="Show every rebalance in detail.")
@options.bootstrap
@options.output
def rebalance(group_id: str, is_all: bool, bootstrap: str, form: str) -> None:
    """Show why a group rebalanced, and what that cost.

    \b
    ottla why rebalance audit
    ottla why rebalance audit --all
    ottla why rebalance audit -o json

    Each broker remembers the latest rebalances of the groups it coordinated since it started.
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: rebalances_of(admin, group_id))
    group, story = found.group, found.story
    rows = [_row(broker_id, one) for broker_id, one in story.rebalances]
    if form == "json":
        silent = {str(broker): error.message for broker, error in story.silent.items()}
        show_one(
            "json",
            {"group": group_id, "state": group.state, "rebalances": rows, "silent": silent},
        )
        return
    show_title(
        f"{group_id}  {group.state}  members {len(group.members)}  coordinated by broker "
        f"{group.coordinator_id}"
    )
    for broker, error in story.silent.items():
        click.echo(f"broker {broker} did not answer: {error.message}", err=True)
    if not rows:
        click.echo(
            "no broker remembers a rebalance of it: there was none, or its coordinator has "
            "restarted since"
        )
        return
    show("table", rows, _COLUMNS)
    for _, one in story.rebalances if is_all else story.rebalances[-1:]:
        _show(one)


def _row(broker_id: int, one: DescribedRebalance) -> dict[str, Any]:
    return {
        "began": iso(one.began_ms),
        "broker": broker_id,
        "protocol": one.protocol,
        "epoch": _known(one.epoch),
        "ending": one.ending,
        "took_ms": _known(one.duration_ms),
        "waited_for_members_ms": _known(one.formed_ms),
        "waited_until": one.ended_by,
        "members": _known(one.members),
        "partition_count": _known(one.partitions),
        "moved": _known(one.moved),
        "stopped": one.without_members,
        "without_partitions_total_ms": one.without_total_ms,
        "without_partitions": {each.member_id: each.without_ms for each in one.waits},
        "cause": first_cause(one) or "-",
        "causes": [_cause(cause) for cause in one.causes],
        "causes_omitted": one.causes_omitted,
    }


def _cause(cause: RebalanceCause) -> dict[str, Any]:
    return {
        "time": iso(cause.at_ms),
        "kind": cause.kind,
        "member_id": cause.member_id or None,
        "client_id": cause.client_id or None,
        "host": cause.host.removeprefix("/") or None,
        "instance_id": cause.instance_id,
        "words": cause.words,
        "setting": cause.setting,
        "is_trigger": cause.is_trigger,
    }


def _show(one: DescribedRebalance) -> None:
    lasted = "" if one.duration_ms < 0 else f" after {one.duration_ms} ms"
    click.secho(
        f"{iso(one.began_ms)}  {one.protocol} protocol, epoch {one.epoch}: {one.ending}{lasted}",
        bold=True,
    )
    for cause in one.causes:
        click.echo(f"  because     {_member(cause)}{cause.words}")
        if cause.setting is not None:
            click.echo(f"  decided by  {cause.setting}")
    if one.causes_omitted:
        click.echo(f"  because     of {one.causes_omitted} more")
    if one.formed_ms >= 0:
        until = "all had joined" if one.ended_by is None else one.ended_by
        click.echo(f"  waited      {one.formed_ms} ms for members, until {until}")
    if one.moved >= 0:
        click.echo(f"  moved       {one.moved} of {one.partitions} partitions")
    if one.without_members:
        longest = one.waits[0]
        click.echo(
            f"  stopped     {one.without_members} of {one.members} members, "
            f"{longest.member_id} for longest: {longest.without_ms} ms"
        )
    elif one.ending == "stable":
        click.echo("  stopped     no member")


def _member(cause: RebalanceCause) -> str:
    if not cause.member_id:
        return ""
    place = f" at {cause.host.removeprefix('/')}" if cause.host else ""
    return f"{cause.member_id}{place}: "


def _known(number: int) -> int | None:
    return None if number < 0 else number
